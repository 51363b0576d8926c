package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"quern.dev/quern/api"
)

// service is a running quernd and who asks it.
type service struct {
	api  *api.ClientWithResponses
	user string
}

// newService finds out who the token belongs to.
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
		return nil, refusal("asking who the token belongs to", me.HTTPResponse, me.Body)
	}

	return &service{client, me.JSON200.Username}, nil
}

// refused is an answer of the service that was not the one hoped for.
type refused struct{ doing, status, body string }

func (r *refused) Error() string { return r.doing + ": " + r.status + " " + r.body }

func refusal(doing string, response *http.Response, body []byte) error {
	return &refused{doing, response.Status, string(body)}
}

// discreet is an error without anything that it may say of a set that nobody reads.
func discreet(err error, split string) error {
	if split != heldOut {
		return err
	}

	if refused, is := errors.AsType[*refused](err); is {
		return errors.New(refused.doing + ": " + refused.status)
	}

	return errors.New("it went wrong")
}

// patient asks again when the service says that it is busy.
type patient struct{ *http.Client }

const tries = 10

func (p patient) Do(request *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		response, err := p.Client.Do(request)
		if err != nil || try == tries || (response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable) {
			return response, err
		}

		wait, _ := strconv.Atoi(response.Header.Get("Retry-After")) // absent: the least

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
