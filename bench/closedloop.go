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

// closedLoop sends a request on each connection, reads the answer, and sends the next one, round and
// round. It writes the same bytes each time instead of using http.Client, because what the client burns
// is taken from both sides alike and would hide the difference between them.
type closedLoop struct {
	exchanges   []exchange // all with the same server
	connections int
}

type exchange struct {
	request *http.Request
	want    []byte // the body of every answer, with status 200
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

func (l closedLoop) run(ctx context.Context, lasting time.Duration) (loaded, error) {
	requests := make([][]byte, len(l.exchanges))

	for i, e := range l.exchanges {
		var request bytes.Buffer
		if err := e.request.Write(&request); err != nil {
			return loaded{}, err
		}

		requests[i] = request.Bytes()
	}

	took := make([][]time.Duration, l.connections)
	group, ctx := errgroup.WithContext(ctx)
	begin := time.Now()

	for i := range took {
		group.Go(func() (err error) {
			took[i], err = l.loop(ctx, requests, begin.Add(lasting))

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

func (l closedLoop) loop(ctx context.Context, requests [][]byte, until time.Time) ([]time.Duration, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", l.exchanges[0].request.URL.Host)
	if err != nil {
		return nil, err
	}
	defer conn.Close()

	if err := conn.SetDeadline(until.Add(10 * time.Second)); err != nil {
		return nil, err
	}

	var took []time.Duration

	answers := bufio.NewReader(conn)

	begin := time.Now()

	for i := 0; begin.Before(until) && ctx.Err() == nil; i = (i + 1) % len(requests) {
		if _, err := conn.Write(requests[i]); err != nil {
			return nil, err
		}

		if err := l.exchanges[i].check(answers); err != nil {
			return nil, err
		}

		now := time.Now()
		took = append(took, now.Sub(begin))
		begin = now
	}

	return took, ctx.Err()
}

func (e exchange) check(answers *bufio.Reader) error {
	response, err := http.ReadResponse(answers, e.request)
	if err != nil {
		return err
	}

	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}

	if response.StatusCode != http.StatusOK || !bytes.Equal(body, e.want) {
		return fmt.Errorf("an unexpected answer: %s %s", response.Status, body)
	}

	return nil
}

// get returns the body of one answer.
func get(request *http.Request) ([]byte, error) { return ask(http.DefaultClient, request) }
