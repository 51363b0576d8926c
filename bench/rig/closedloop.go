package rig

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

// ClosedLoop sends a request on each connection, reads the response, and sends the next request, again and again. It
// writes the same bytes each time instead of using http.Client, because the processor time of the client is added
// to the figures of both servers alike and would hide the difference between them.
type ClosedLoop struct {
	Exchanges   []Exchange // all to the same server
	Connections int
}

type Exchange struct {
	Request *http.Request
	Want    []byte // the body of every response, with status 200
}

type Loaded struct {
	PerSecond float64
	Took      []time.Duration // sorted
}

func (l Loaded) Quantile(q float64) time.Duration { return l.Took[int(q*float64(len(l.Took)-1))] }

func (l Loaded) String() string {
	return fmt.Sprintf("%.0f/s, p50 %v, p99 %v", l.PerSecond,
		l.Quantile(0.5).Round(time.Microsecond), l.Quantile(0.99).Round(time.Microsecond))
}

// Sorted returns durations as the result of a load.
func Sorted(took []time.Duration) Loaded {
	slices.Sort(took)

	return Loaded{Took: took}
}

func (l ClosedLoop) Run(ctx context.Context, lasting time.Duration) (Loaded, error) {
	requests := make([][]byte, len(l.Exchanges))

	for i, e := range l.Exchanges {
		var request bytes.Buffer
		if err := e.Request.Write(&request); err != nil {
			return Loaded{}, err
		}

		requests[i] = request.Bytes()
	}

	took := make([][]time.Duration, l.Connections)
	group, ctx := errgroup.WithContext(ctx)
	begin := time.Now()

	for i := range took {
		group.Go(func() (err error) {
			took[i], err = l.loop(ctx, requests, begin.Add(lasting))

			return err
		})
	}

	if err := group.Wait(); err != nil {
		return Loaded{}, err
	}

	all := slices.Concat(took...)
	slices.Sort(all)

	return Loaded{PerSecond: float64(len(all)) / time.Since(begin).Seconds(), Took: all}, nil
}

func (l ClosedLoop) loop(ctx context.Context, requests [][]byte, until time.Time) ([]time.Duration, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", l.Exchanges[0].Request.URL.Host)
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

	// At least one request, also if the machine is so busy that the time is over before the first.
	for i := 0; (len(took) == 0 || begin.Before(until)) && ctx.Err() == nil; i = (i + 1) % len(requests) {
		if _, err := conn.Write(requests[i]); err != nil {
			return nil, err
		}

		if err := l.Exchanges[i].check(answers); err != nil {
			return nil, err
		}

		now := time.Now()
		took = append(took, now.Sub(begin))
		begin = now
	}

	return took, ctx.Err()
}

func (e Exchange) check(answers *bufio.Reader) error {
	response, err := http.ReadResponse(answers, e.Request)
	if err != nil {
		return err
	}

	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}

	if response.StatusCode != http.StatusOK || !bytes.Equal(body, e.Want) {
		return fmt.Errorf("an unexpected answer: %s %s", response.Status, body)
	}

	return nil
}

// Get returns the body of one response.
func Get(request *http.Request) ([]byte, error) { return ask(http.DefaultClient, request) }
