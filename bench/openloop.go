package main

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

// openLoop sends requests at a constant rate, whether or not those before have been answered. A time
// counts from the moment at which the request was due, so a service that stalls is not spared what it
// held up.
type openLoop struct {
	perSecond int
	next      func(i int) (*http.Request, error)
}

// run lasts a little longer than said: the requests of the first second open the connections and their
// times do not count. Every answer must have status 200.
func (l openLoop) run(ctx context.Context, lasting time.Duration) (loaded, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 1000}
	defer transport.CloseIdleConnections()

	var (
		client   = &http.Client{Transport: transport, Timeout: 10 * time.Second}
		requests = int(lasting.Seconds()+1) * l.perSecond
		took     = make([]time.Duration, requests)
		failed   = make([]error, requests)
		begin    = time.Now()
		asking   sync.WaitGroup
	)

	for i := range requests {
		request, err := l.next(i)
		if err != nil {
			return loaded{}, err
		}

		due := begin.Add(time.Duration(i) * time.Second / time.Duration(l.perSecond))

		select {
		case <-ctx.Done():
			return loaded{}, ctx.Err()
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
		return loaded{}, fmt.Errorf("%d of %d requests failed: %w", len(failures), requests, errors.Join(failures[:min(3, len(failures))]...))
	}

	took = took[l.perSecond:]
	slices.Sort(took)

	return loaded{perSecond: float64(requests) / time.Since(begin).Seconds(), took: took}, nil
}

// ask returns the body of one answer, which must have status 200.
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
