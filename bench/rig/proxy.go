package rig

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Counter is a proxy in front of the object store that records each request.
type Counter struct {
	*httptest.Server

	Delay atomic.Int64 // nanoseconds that are added to each request

	mu   sync.Mutex
	seen []Request
}

type Request struct {
	Method, Path string
	Begun, Ended time.Time
}

// StartCounter starts a proxy that forwards requests unchanged: signatures are made for the host that the client sees.
func StartCounter(endpoint string) (*Counter, error) {
	store, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}

	c := &Counter{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(store)
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
	}

	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()

		time.Sleep(time.Duration(c.Delay.Load()))
		proxy.ServeHTTP(w, r)

		c.mu.Lock()
		defer c.mu.Unlock()

		c.seen = append(c.seen, Request{r.Method, r.URL.Path, begun, time.Now()})
	}))

	return c, nil
}

// Take returns the requests since the previous call.
func (c *Counter) Take() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()

	seen := c.seen
	c.seen = nil

	return seen
}
