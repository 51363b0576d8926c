package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// OpenLoop sends requests at a constant rate, whether or not the earlier ones have been answered. A time counts from
// the moment at which the request was due, so the delays that a stalled service causes are included.
type OpenLoop struct {
	PerSecond int
	Next      func(i int) (*http.Request, error)
}

// Run takes a little longer than lasting: the requests of the first second open the connections, and their times do not
// count. Every response must have a status of 2xx.
func (l OpenLoop) Run(ctx context.Context, lasting time.Duration) (Loaded, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 1000}
	defer transport.CloseIdleConnections()

	var (
		client   = &http.Client{Transport: transport, Timeout: 10 * time.Second}
		requests = int(lasting.Seconds()+1) * l.PerSecond
		took     = make([]time.Duration, requests)
		failed   = make([]error, requests)
		begin    = time.Now()
		asking   sync.WaitGroup
	)

	for i := range requests {
		request, err := l.Next(i)
		if err != nil {
			return Loaded{}, err
		}

		due := begin.Add(time.Duration(i) * time.Second / time.Duration(l.PerSecond))

		select {
		case <-ctx.Done():
			return Loaded{}, ctx.Err()
		case <-time.After(time.Until(due)):
		}

		asking.Go(func() {
			_, failed[i] = ask(client, request)
			took[i] = time.Since(due)
		})
	}

	asking.Wait()

	failures := slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	if len(failures) > 0 {
		return Loaded{}, fmt.Errorf("%d of %d requests failed: %w", len(failures), requests, errors.Join(failures[:min(3, len(failures))]...))
	}

	took = took[l.PerSecond:]
	slices.Sort(took)

	return Loaded{PerSecond: float64(requests) / time.Since(begin).Seconds(), Took: took}, nil
}

// ask returns the body of one response, which must have a status of 2xx.
func ask(client *http.Client, request *http.Request) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s %s", request.Method, request.URL, response.Status, body)
	}

	return body, err
}
