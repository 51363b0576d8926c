package connection

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
)

// HTTPS is a server with files, whose addresses begin with BaseURL.
type HTTPS struct {
	BaseURL string `json:"baseUrl"` // ends with a slash
	Auth    string `json:"auth"`
	User    string `json:"user,omitempty"`
	CA      string `json:"caCertificate,omitempty"` // PEM; empty for the authorities of the operator
}

// Ways to send the secret.
const (
	NoAuth = "none"
	Bearer = "bearer"
	Basic  = "basic"
)

func toldHTTPS(problem string) string {
	switch problem {
	case ProblemRefused:
		return "The server refused the credentials, or they do not permit to read the file."
	case ProblemMissing:
		return "The server has no such file."
	case ProblemTLS:
		return "The TLS connection failed. Check the certificate of the host. For a certificate of its own, give the authority as caCertificate."
	case ProblemAnswer:
		return "The server answered with an error or a redirect. Redirects are not followed: use the address to which they lead."
	default:
		return Told(problem)
	}
}

var (
	tokens = regexp.MustCompile(`^[\x21-\x7e]+$`)
	users  = regexp.MustCompile(`^[^:\x00-\x1f\x7f]+$`)
)

// checkHTTPS returns ValidationFailed for settings that are not used.
func (c *Connections) checkHTTPS(want HTTPS, secret string) error {
	address, err := c.checkAddress("https.baseUrl", want.BaseURL)
	if err != nil {
		return err
	}

	if below := strings.TrimSuffix(strings.TrimPrefix(address.EscapedPath(), "/"), "/"); below != "" && CheckPath(below) != "" {
		return fault.Invalid("https.baseUrl", "must have a path without empty parts, . and ..")
	}

	if want.Auth == Basic && !users.MatchString(want.User) {
		return fault.Invalid("https.user", "must not have a colon or a control character")
	}

	if _, err := authorities(want.CA); err != nil {
		return fault.Invalid("https.caCertificate", "must be certificates in PEM, and nothing else")
	}

	return checkToken(want, secret)
}

// checkToken returns ValidationFailed for a token that cannot be sent.
func checkToken(of HTTPS, secret string) error {
	if of.Auth == Bearer && !tokens.MatchString(secret) {
		return fault.Invalid("token", "must be printable ASCII without spaces")
	}

	return nil
}

// authorities returns the certificates of a text, and nil for an empty one. A text that has a key is refused: settings are not secret.
func authorities(text string) (*x509.CertPool, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // those of the operator
	}

	pool := x509.NewCertPool()

	rest := []byte(text)
	for len(strings.TrimSpace(string(rest))) > 0 {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return nil, errors.New("not a certificate in PEM")
		}

		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}

		pool.AddCert(certificate)
	}

	return pool, nil
}

const maxPath = 1000 // bytes

// CheckPath returns what is wrong with an address of a file relative to that of its connection, and nothing if it can be used.
func CheckPath(text string) string {
	if len(text) > maxPath {
		return "must have at most 1000 bytes"
	}

	relative, err := relativeTo(text)
	if err != nil || strings.ContainsAny(text, `#\`) || strings.ContainsFunc(relative.Path, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f }) {
		return "is not a relative address: % must be followed by two digits, and #, \\ and control characters are not allowed"
	}

	for part := range strings.SplitSeq(relative.Path, "/") {
		if part == "" || part == "." || part == ".." {
			return "must name a file below the address of the connection: without / at the beginning or the end, //, . and .."
		}
	}

	return ""
}

// relativeTo parses a relative address. Without the prefix, a colon would end a scheme and // begin a host.
func relativeTo(text string) (*url.URL, error) {
	relative, err := url.Parse("./" + text)
	if err != nil {
		return nil, err
	}

	relative.RawPath = strings.TrimPrefix(relative.EscapedPath(), "./")
	relative.Path = strings.TrimPrefix(relative.Path, "./")

	return relative, nil
}

// FileName returns the path of a file from its address, as people write it.
func FileName(address string) string {
	relative, err := relativeTo(address)
	if err != nil {
		return address
	}

	return relative.Path
}

// Web reads the files of a connection to addresses.
type Web struct {
	base        url.URL
	credentials string // value of the header Authorization; empty for none
	client      *http.Client
	connection  *Connections
}

// web returns the client of a connection to addresses. The caller must call done when it is no longer needed.
func (c *Connections) web(of HTTPS, secret string) (found *Web, done func(), err error) {
	address, err := url.Parse(of.BaseURL)
	if err != nil {
		return nil, nil, err
	}

	// The operator may have changed the list since the connection was made.
	if !c.hosts.allow(address) {
		return nil, nil, errHost
	}

	guarded := c.guarded(address, address.Hostname())
	if err := trust(guarded, of.CA); err != nil {
		return nil, nil, err
	}

	found = &Web{base: *address, connection: c, client: &http.Client{
		Transport:     blob.Moving(guarded, c.Timeout, c.Timeout),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}

	switch of.Auth {
	case Bearer:
		found.credentials = "Bearer " + secret
	case Basic:
		found.credentials = "Basic " + base64.StdEncoding.EncodeToString([]byte(of.User+":"+secret))
	}

	return found, guarded.CloseIdleConnections, nil
}

// address returns the address of a file.
func (w *Web) address(file string) (string, error) {
	relative, err := relativeTo(file)
	if err != nil {
		return "", err
	}

	address := w.base
	address.RawPath = w.base.EscapedPath() + relative.EscapedPath()
	address.Path = w.base.Path + relative.Path
	address.RawQuery = relative.RawQuery

	return address.String(), nil
}

// tryHTTPS asks for the base address. A server that has no list there, or does not show it, has been reached nevertheless.
func (c *Connections) tryHTTPS(ctx context.Context, of HTTPS, secret string) string {
	web, done, err := c.web(of, secret)
	if err != nil {
		return ProblemHTTPS(err)
	}
	defer done()

	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()

	answer, err := web.ask(ctx, web.base.String(), Validator{})
	if err != nil {
		return ProblemHTTPS(err)
	}

	_ = answer.Body.Close()

	switch status := answer.StatusCode; {
	case status == http.StatusUnauthorized:
		return ProblemRefused
	case status >= http.StatusOK && status < http.StatusMultipleChoices,
		slices.Contains([]int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone}, status):
		return ""
	default:
		return ProblemAnswer
	}
}

// OpenHTTPS returns a client that reads from a connection of the caller. The caller of OpenHTTPS must call done at the end.
//
// Faults: NotFound, Forbidden, ValidationFailed for another kind, UpstreamUnavailable.
func (c *Connections) OpenHTTPS(ctx context.Context, who auth.Principal, id uuid.UUID) (web *Web, done func(), err error) {
	found, err := c.Get(ctx, who, id)
	if err != nil {
		return nil, nil, err
	}

	if found.Kind != KindHTTPS {
		return nil, nil, fault.New(fault.ValidationFailed, "The connection is not to addresses.")
	}

	secret, err := c.Keys.open(found.secret, found.Account, found.ID)
	if err != nil {
		return nil, nil, FailedHTTPS(err)
	}

	if web, done, err = c.web(found.HTTPS, string(secret)); err != nil {
		return nil, nil, FailedHTTPS(err)
	}

	return web, done, nil
}

// ProblemHTTPS returns what went wrong with a server.
func ProblemHTTPS(err error) string {
	problem := Problem(err)
	if _, isNetwork := errors.AsType[net.Error](err); problem == ProblemAnswer && isNetwork {
		problem = ProblemConnect
	}

	return problem
}

// FailedHTTPS returns the fault for a problem with a server.
func FailedHTTPS(err error) *fault.Error {
	return fault.New(fault.UpstreamUnavailable, toldHTTPS(ProblemHTTPS(err)))
}

// normal returns the settings as they are stored.
func (h HTTPS) normal() HTTPS {
	h.BaseURL = strings.TrimRight(h.BaseURL, "/") + "/"
	h.Auth = cmp.Or(h.Auth, NoAuth)

	return h
}
