package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"quern.dev/quern/internal/guard"
)

// The problems of deliveries. They say what the sender saw, and never what the receiver wrote.
const (
	problemStatus   = "status"   // an answer other than 2xx
	problemRedirect = "redirect" // a redirect, which is not followed
	problemTimeout  = "timeout"
	problemTLS      = "tls"
	problemAddress  = "address" // not public
	problemConnect  = "connect"
	problemSecret   = "secret"   // the service has another secret than when the webhook was made
	problemInactive = "inactive" // the webhook was paused, disabled or deleted
	problemGone     = "gone"     // the event is no longer kept
)

// maxAnswer is how much of an answer is read, so that the connection can be used again.
const maxAnswer = 16 << 10

// clients returns the clients for addresses with and without TLS.
func (s *sender) clients(c Config) (secure, plain *http.Client) {
	client := func(plain bool) *http.Client {
		transport := c.Transport.Clone()
		dialer := &net.Dialer{Timeout: c.Timeout, Control: s.policy.Control(plain)}
		transport.Proxy, transport.DialContext = nil, dialer.DialContext
		transport.ResponseHeaderTimeout, transport.TLSHandshakeTimeout = c.Timeout, c.Timeout
		transport.MaxResponseHeaderBytes = maxAnswer

		return &http.Client{
			Transport: transport, Timeout: c.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}

	return client(false), client(true)
}

// post sends a body and returns the status of the answer, or the problem.
func (s *sender) post(ctx context.Context, k Webhook, id string, body []byte, secrets [][]byte) (status int, problem string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, k.URL, bytes.NewReader(body))
	if err != nil {
		return 0, problemConnect
	}

	at := time.Now()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Webhook-Id", id)
	request.Header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	request.Header.Set("Webhook-Signature", signatures(secrets, id, at, body))

	return s.do(request)
}

// do sends a request and returns the status of the answer, or the problem.
func (s *sender) do(request *http.Request) (status int, problem string) {
	request.Header.Set("User-Agent", "quern")

	client := s.secure
	if request.URL.Scheme == "http" {
		client = s.plain
	}

	answer, err := client.Do(request)
	if err != nil {
		return 0, problemOf(err)
	}

	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	_ = answer.Body.Close()

	switch {
	case answer.StatusCode >= 200 && answer.StatusCode < 300:
		return answer.StatusCode, ""
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		return answer.StatusCode, problemRedirect
	default:
		return answer.StatusCode, problemStatus
	}
}

func problemOf(err error) string {
	var (
		timeout     net.Error
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
	)

	switch {
	case errors.Is(err, guard.ErrAddress):
		return problemAddress
	case errors.As(err, &certificate), errors.As(err, &record), strings.Contains(err.Error(), "tls: "):
		return problemTLS
	case errors.As(err, &timeout) && timeout.Timeout():
		return problemTimeout
	default:
		return problemConnect
	}
}
