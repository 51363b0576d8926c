package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// counter stands before the object store and sees each request.
type counter struct {
	*httptest.Server

	delay atomic.Int64 // nanoseconds that each request takes more

	mu   sync.Mutex
	seen []request
}

type request struct {
	method, path string
	begun, ended time.Time
}

// startCounter forwards requests as they are: signatures are made for the host that the client sees.
func startCounter(endpoint string) (*counter, error) {
	store, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}

	c := &counter{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(store)
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
	}

	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()

		time.Sleep(time.Duration(c.delay.Load()))
		proxy.ServeHTTP(w, r)

		c.mu.Lock()
		defer c.mu.Unlock()

		c.seen = append(c.seen, request{r.Method, r.URL.Path, begun, time.Now()})
	}))

	return c, nil
}

// take returns the requests since it was called before.
func (c *counter) take() []request {
	c.mu.Lock()
	defer c.mu.Unlock()

	seen := c.seen
	c.seen = nil

	return seen
}

// through is the same place, reached by another address.
func (p *place) through(endpoint string) *place {
	other := *p
	other.endpoint = endpoint
	options := p.client.Options()
	options.BaseEndpoint = &endpoint
	other.client = s3.New(options)

	return &other
}
