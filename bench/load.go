package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// load is a closed loop: each connection sends the request, reads the answer, and sends it again.
// It writes the same bytes each time instead of using http.Client, because what the client burns is
// taken from both sides alike and would hide the difference between them.
type load struct {
	request     *http.Request
	want        []byte // the body of every answer, with status 200
	connections int
}

type loaded struct {
	perSecond float64
	took      []time.Duration // sorted
}

func (l loaded) quantile(q float64) time.Duration { return l.took[int(q*float64(len(l.took)-1))] }

func (l loaded) String() string {
	return fmt.Sprintf("%.0f/s, p50 %v, p99 %v", l.perSecond,
		l.quantile(0.5).Round(time.Microsecond), l.quantile(0.99).Round(time.Microsecond))
}

func (l load) run(ctx context.Context, lasting time.Duration) (loaded, error) {
	var request bytes.Buffer
	if err := l.request.Write(&request); err != nil {
		return loaded{}, err
	}

	took := make([][]time.Duration, l.connections)
	group, ctx := errgroup.WithContext(ctx)
	begin := time.Now()

	for i := range took {
		group.Go(func() (err error) {
			took[i], err = l.loop(ctx, request.Bytes(), begin.Add(lasting))

			return err
		})
	}

	if err := group.Wait(); err != nil {
		return loaded{}, err
	}

	all := slices.Concat(took...)
	slices.Sort(all)

	return loaded{perSecond: float64(len(all)) / time.Since(begin).Seconds(), took: all}, nil
}

func (l load) loop(ctx context.Context, request []byte, until time.Time) ([]time.Duration, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", l.request.URL.Host)
	if err != nil {
		return nil, err
	}
	defer conn.Close()

	if err := conn.SetDeadline(until.Add(10 * time.Second)); err != nil {
		return nil, err
	}

	var took []time.Duration

	answers := bufio.NewReader(conn)

	for begin := time.Now(); begin.Before(until) && ctx.Err() == nil; {
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}

		if err := l.check(answers); err != nil {
			return nil, err
		}

		now := time.Now()
		took = append(took, now.Sub(begin))
		begin = now
	}

	return took, ctx.Err()
}

func (l load) check(answers *bufio.Reader) error {
	response, err := http.ReadResponse(answers, l.request)
	if err != nil {
		return err
	}

	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}

	if response.StatusCode != http.StatusOK || !bytes.Equal(body, l.want) {
		return fmt.Errorf("an unexpected answer: %s %s", response.Status, body)
	}

	return nil
}

// get returns the body of one answer.
func get(request *http.Request) ([]byte, error) {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s %s", request.Method, request.URL, response.Status, body)
	}

	return body, err
}
