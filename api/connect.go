package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// BasePath is the path prefix of all operations of a server.
const BasePath = "/api/v1"

// Settings are the settings of a connection.
type Settings struct {
	// Server is the address of the service, such as https://quern.example.org, with or without the base path.
	Server string
	// Token is called before every attempt, so that it can renew an expired token. If it is nil, no token is sent.
	Token func(context.Context) (string, error)
	// Retry configures how failed attempts are repeated.
	Retry Retry
	// UserAgent is the name of the program.
	UserAgent string
}

// Connect returns a client that repeats requests where that is safe. It does not send anything yet.
func Connect(s Settings) (*Client, error) {
	address, err := url.Parse(strings.TrimSuffix(s.Server, "/"))
	if err != nil || address.Host == "" || (address.Scheme != "http" && address.Scheme != "https") {
		return nil, fmt.Errorf("%q is not the address of a server, such as https://quern.example.org", s.Server)
	}

	if !strings.HasSuffix(address.Path, BasePath) {
		address = address.JoinPath(BasePath)
	}

	retry := s.Retry
	retry.prepare = func(request *http.Request) error {
		if s.UserAgent != "" {
			request.Header.Set("User-Agent", s.UserAgent)
		}

		if s.Token == nil {
			return nil
		}

		token, err := s.Token(request.Context())
		if err != nil {
			return err
		}

		request.Header.Set("Authorization", "Bearer "+token)

		return nil
	}

	return NewClient(address.String(), WithHTTPClient(&retry))
}

// Error is an error response.
type Error struct {
	ErrorResponse

	Status     int
	RequestID  string        // identifies the request in the server's log
	RetryAfter time.Duration // zero if the server did not send it
}

func (e *Error) Error() string {
	text := e.Message
	if text == "" {
		text = fmt.Sprintf("the server responded with %d %s", e.Status, http.StatusText(e.Status))
	}

	if e.ErrorMessage != "" {
		text += " " + e.ErrorMessage
	}

	lines := []string{text}

	if e.SubErrors != nil {
		for _, sub := range *e.SubErrors {
			lines = append(lines, fmt.Sprintf("  %s: %s", sub.Code, sub.Message))
		}
	}

	return strings.Join(lines, "\n")
}

// IsCode reports whether err is a response of the service with this code.
func IsCode(err error, code ErrorCode) bool {
	answer, is := errors.AsType[*Error](err)

	return is && answer.ErrorCode == code
}

// Read takes the results of an operation of the client and returns the value in the response, or an *Error. Numbers in
// rows are json.Number, with the digits that were sent. For a response without a body it returns the zero value.
//
//	me, err := api.Read[api.Me](client.GetMe(ctx))
func Read[T any](response *http.Response, err error) (value T, _ error) {
	if response, err = Check(response, err); err != nil {
		return value, err
	}
	defer func() { _ = response.Body.Close() }()

	decoder := json.NewDecoder(response.Body)
	decoder.UseNumber()

	if err := decoder.Decode(&value); err != nil && !errors.Is(err, io.EOF) {
		return value, fmt.Errorf("the response to %s %s cannot be read: %w", response.Request.Method, response.Request.URL.Path, err)
	}

	return value, nil
}

// Check returns an *Error for an error response. The caller closes the body of any other response.
func Check(response *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}

	if response.StatusCode < http.StatusBadRequest {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()

	answer := &Error{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id")}
	answer.RetryAfter, _ = retryAfter(response)

	// A proxy between the client and the server may send another format; then only the status is known.
	content, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	_ = json.Unmarshal(content, &answer.ErrorResponse)

	return nil, answer
}

// Pages iterates over all items of a list. It calls page with a nil cursor first, then with each cursor that page
// returned, until page returns none.
func Pages[T any](page func(cursor *string) (items []T, next *string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var cursor *string

		for {
			items, next, err := page(cursor)
			if err != nil {
				var none T

				yield(none, err)

				return
			}

			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}

			if cursor = next; cursor == nil {
				return
			}
		}
	}
}
