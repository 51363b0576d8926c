package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"quern.dev/quern/api"
)

// service is a running quernd with the user who asks.
type service struct {
	api   *api.ClientWithResponses
	user  string
	known sync.Map // what mutations know, by table
}

// newService returns a service, with the owner of the token as its user.
func newService(ctx context.Context, address, token string) (*service, error) {
	client, err := api.NewClientWithResponses(address+"/api/v1", api.WithHTTPClient(patient{http.DefaultClient}),
		api.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
			request.Header.Set("Authorization", "Bearer "+token)

			return nil
		}))
	if err != nil {
		return nil, err
	}

	me, err := client.GetMeWithResponse(ctx)
	if err != nil {
		return nil, err
	}

	if me.JSON200 == nil {
		return nil, refusal("reading the account of the token", me.HTTPResponse, me.Body)
	}

	return &service{api: client, user: me.JSON200.Username}, nil
}

// refused is an unexpected response of the service.
type refused struct{ doing, status, body string }

func (r *refused) Error() string { return r.doing + ": " + r.status + " " + r.body }

func refusal(doing string, response *http.Response, body []byte) error {
	return &refused{doing, response.Status, string(body)}
}

// discreet removes from an error everything that may disclose content of the held-out split.
func discreet(err error, split string) error {
	if split != heldOut {
		return err
	}

	if refused, is := errors.AsType[*refused](err); is {
		return errors.New(refused.doing + ": " + refused.status)
	}

	return errors.New("an error whose details are not shown for this split")
}

// patient repeats a request when the service reports that it is busy.
type patient struct{ *http.Client }

const tries = 10

func (p patient) Do(request *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		response, err := p.Client.Do(request)
		if err != nil || try == tries || (response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable) {
			return response, err
		}

		wait, _ := strconv.Atoi(response.Header.Get("Retry-After")) // if absent, wait for the minimum

		if err := errors.Join(response.Body.Close(), sleep(request.Context(), time.Duration(max(wait, 1))*time.Second)); err != nil {
			return nil, err
		}

		if request.GetBody != nil {
			if request.Body, err = request.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

func sleep(ctx context.Context, lasting time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(lasting):
		return nil
	}
}
