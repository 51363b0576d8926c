package connection

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/guard"
)

// The problems of a connection. They say what this side saw, and never what the other side wrote.
const (
	ProblemAddress = "address" // not public, and not in a network of the operator
	ProblemHost    = "host"    // the operator does not allow it
	ProblemConnect = "connect"
	ProblemTLS     = "tls"
	ProblemTimeout = "timeout"
	ProblemRefused = "refused" // the credentials
	ProblemMissing = "missing" // the bucket, or the file
	ProblemAnswer  = "answer"  // another answer
	ProblemKey     = "key"     // the service does not have the key with which the secret was sealed
)

// Told returns the sentence for a problem.
func Told(problem string) string {
	switch problem {
	case ProblemAddress:
		return "The name of the host leads to an address that is not public. The operator of the service can allow its network (QUERN_SOURCE_ALLOWED_NETWORKS)."
	case ProblemHost:
		return "The operator of the service does not allow this host with this port (QUERN_SOURCE_HOSTS)."
	case ProblemConnect:
		return "The host cannot be reached. Check the name, the port and the network."
	case ProblemTLS:
		return "The TLS connection failed. Check the certificate of the host; the operator of the service can add an authority (QUERN_SOURCE_CA_FILE)."
	case ProblemTimeout:
		return "The host did not answer in time."
	case ProblemRefused:
		return "The store refused the access key. It must be allowed to list the bucket under the prefix and to read its objects."
	case ProblemMissing:
		return "The store has no such bucket or file."
	case ProblemKey:
		return "The secret was stored under a key that the service no longer has. Give the credentials again."
	default:
		return "The host did not answer as an S3 store does. Check the endpoint, the region and pathStyle; redirects are not followed."
	}
}

// Failed returns the fault for a problem with the other side.
func Failed(problem string) *fault.Error {
	return fault.New(fault.UpstreamUnavailable, Told(problem))
}

var errHost = errors.New("the operator does not allow the host")

// Problem returns what went wrong with a call to the other side.
func Problem(err error) string {
	var (
		refusal     *blob.RefusalError
		timeout     net.Error
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
	)

	switch {
	case errors.Is(err, errKey):
		return ProblemKey
	case errors.Is(err, errHost):
		return ProblemHost
	case errors.Is(err, guard.ErrAddress):
		return ProblemAddress
	case errors.As(err, &certificate), errors.As(err, &record), strings.Contains(err.Error(), "tls: "):
		return ProblemTLS
	case errors.As(err, &refusal) && (refusal.Status == http.StatusForbidden || refusal.Status == http.StatusUnauthorized):
		return ProblemRefused
	case fault.Is(err, fault.NotFound), errors.As(err, &refusal) && refusal.Status == http.StatusNotFound:
		return ProblemMissing
	case errors.As(err, &refusal):
		return ProblemAnswer
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return ProblemTimeout
	case fault.Is(err, fault.Unavailable):
		return ProblemConnect
	default:
		return ProblemAnswer
	}
}

// hosts are the hosts that the operator allows: "name", "name:port", "*.domain" or "*.domain:port". Without a port, that of the scheme.
type hosts []string

func (h hosts) allow(address *url.URL) bool {
	name, port := strings.ToLower(strings.TrimSuffix(address.Hostname(), ".")), address.Port()

	for _, entry := range h {
		want, wantPort := strings.ToLower(entry), ""
		if host, number, err := net.SplitHostPort(want); err == nil {
			want, wantPort = host, number
		}

		domain, isDomain := strings.CutPrefix(want, "*")
		matches := name == want || isDomain && strings.HasPrefix(domain, ".") && strings.HasSuffix(name, domain) && len(name) > len(domain)

		if matches && portOf(address.Scheme, port) == portOf(address.Scheme, wantPort) {
			return true
		}
	}

	return false
}

func portOf(scheme, port string) string {
	switch {
	case port != "":
		return port
	case scheme == "http":
		return "80"
	default:
		return "443"
	}
}

// checkAddress returns ValidationFailed for an address to which no connection is made.
func (c *Connections) checkAddress(field, text string) (*url.URL, error) {
	address, err := url.Parse(text)

	switch {
	case err != nil || address.Hostname() == "" || address.Opaque != "":
		return nil, fault.Invalid(field, "is not an address such as https://s3.eu-central-1.amazonaws.com")
	case address.Scheme != "https" && (address.Scheme != "http" || len(c.Allowed) == 0):
		return nil, fault.Invalid(field, "must begin with https://")
	case address.User != nil || address.RawQuery != "" || address.ForceQuery || address.Fragment != "":
		return nil, fault.Invalid(field, "must not have a user, a query or a fragment")
	case !c.hosts.allow(address):
		return nil, fault.Invalid(field, Told(ProblemHost))
	}

	if literal, err := netip.ParseAddr(address.Hostname()); err == nil && !c.policy.Permits(literal) {
		return nil, fault.Invalid(field, Told(ProblemAddress))
	}

	return address, nil
}

// checkEndpoint returns ValidationFailed for an address of a store that is not used.
func (c *Connections) checkEndpoint(field, text string) error {
	address, err := c.checkAddress(field, text)
	if err == nil && strings.Trim(address.Path, "/") != "" {
		err = fault.Invalid(field, "must have only a host and a port; the bucket and the prefix have fields of their own")
	}

	return err
}

// maxAnswer is the largest answer without the content of a file: 1,000 keys of 1 KiB, escaped, and their attributes.
const maxAnswer = 16 << 20

// transport sends requests to the host of one connection.
type transport struct{ next http.RoundTripper }

// RoundTrip limits answers, which the caller decodes in memory, unless they are the content of a file.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err == nil && (answer.StatusCode >= http.StatusMultipleChoices || r.URL.Query().Has("list-type")) {
		answer.Body = limited{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	}

	return answer, err
}

type limited struct {
	io.Reader
	io.Closer
}

// guarded returns a transport that connects only to these hosts, at the port of the address, and only to addresses that the policy permits.
func (c *Connections) guarded(address *url.URL, hosts ...string) *http.Transport {
	port := portOf(address.Scheme, address.Port())
	dialer := &net.Dialer{Timeout: c.Timeout, Control: c.policy.Control(address.Scheme == "http")}
	guarded := c.Transport.Clone()
	guarded.Proxy, guarded.TLSHandshakeTimeout, guarded.ResponseHeaderTimeout, guarded.MaxResponseHeaderBytes = nil, c.Timeout, c.Timeout, 64<<10
	guarded.DialContext = func(ctx context.Context, network, to string) (net.Conn, error) {
		if !slices.ContainsFunc(hosts, func(host string) bool { return to == net.JoinHostPort(host, port) }) {
			return nil, errHost
		}

		return dialer.DialContext(ctx, network, to)
	}

	return guarded
}

// store returns the client of an S3 connection. The caller must call done when it is no longer needed.
func (c *Connections) store(found Connection, secret string) (store *blob.Store, done func(), err error) {
	return c.storeAt(found.S3, secret, "")
}

// storeAt returns the client of a store. The caller must call done when it is no longer needed.
func (c *Connections) storeAt(of S3, secret, ca string) (store *blob.Store, done func(), err error) {
	address, err := url.Parse(of.Endpoint)
	if err != nil {
		return nil, nil, err
	}

	// The operator may have changed the list since the connection was made.
	if !c.hosts.allow(address) {
		return nil, nil, errHost
	}

	guarded := c.guarded(address, address.Hostname(), of.Bucket+"."+address.Hostname())
	if err := trust(guarded, ca); err != nil {
		return nil, nil, err
	}

	store, err = blob.New(blob.Config{
		Endpoint: of.Endpoint, Region: of.Region, Bucket: of.Bucket, Prefix: of.Prefix, AccessKey: of.AccessKeyID, SecretKey: secret,
		PathStyle: of.PathStyle, Client: &http.Client{Transport: transport{guarded}, Timeout: c.Timeout}, Now: c.Now,
		MayRemove: func(context.Context) error { return errors.New("connections only read") },
	})
	if err != nil {
		return nil, nil, fmt.Errorf("the store of a connection: %w", err)
	}

	return store, guarded.CloseIdleConnections, nil
}

// try makes a real call to the other side, and returns the problem.
func (c *Connections) try(ctx context.Context, found Connection, secret string) string {
	switch found.Kind {
	case KindPostgres:
		return c.tryPostgres(ctx, found.Postgres, secret)
	case KindHTTPS:
		return c.tryHTTPS(ctx, found.HTTPS, secret)
	case KindIceberg:
		return c.tryIceberg(ctx, found, secret)
	}

	store, done, err := c.store(found, secret)
	if err != nil {
		return Problem(err)
	}
	defer done()

	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()

	for _, err := range store.List(ctx, "") {
		if err != nil {
			return Problem(err)
		}

		break
	}

	return ""
}
