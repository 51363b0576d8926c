package connection

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
)

// KindIceberg is a catalog of Iceberg tables, with the store of their files.
const KindIceberg = "iceberg"

// Iceberg is a REST catalog of Iceberg tables. The files of the tables are in the bucket of Store.
type Iceberg struct {
	URI       string `json:"uri"` // ends with a slash
	Warehouse string `json:"warehouse,omitempty"`
	Auth      string `json:"auth"` // NoAuth, Bearer or Client
	ClientID  string `json:"clientId,omitempty"`
	Scope     string `json:"scope,omitempty"`
	TokenURI  string `json:"tokenUri,omitempty"` // of the server that gives tokens; empty for the catalog itself
	CA        string `json:"caCertificate,omitempty"`
	Store     S3     `json:"store"`
}

// Client is the way to a token with an id and a secret of a client (OAuth 2 client credentials).
const Client = "client"

// icebergSecret is the secret of a connection to a catalog.
type icebergSecret struct {
	Catalog string `json:"catalog,omitempty"` // the token, or the secret of the client
	Store   string `json:"store"`
}

func (s icebergSecret) text() (string, error) {
	text, err := json.Marshal(s)

	return string(text), err
}

// IcebergSecret returns the secret of a connection to a catalog: the token or the secret of the client, and the secret key of the store.
func IcebergSecret(catalog, store string) (string, error) {
	return icebergSecret{Catalog: catalog, Store: store}.text()
}

func toldIceberg(problem string) string {
	switch problem {
	case ProblemRefused:
		return "The catalog refused the credentials, or its store refused the access key. They must permit to read the tables, and to list and read the bucket under the prefix."
	case ProblemMissing:
		return "The catalog has no such warehouse, namespace or table, or the store no such bucket."
	case ProblemTLS:
		return "The TLS connection failed. Check the certificates of the catalog and of its store. For a certificate of its own, give the authority as caCertificate."
	case ProblemAnswer:
		return "The host did not answer as an Iceberg REST catalog, or as an S3 store, does. Check the address of the catalog and the settings of the store; redirects are not followed."
	default:
		return Told(problem)
	}
}

// ProblemIceberg returns what went wrong with a catalog or its store.
func ProblemIceberg(err error) string { return ProblemHTTPS(err) }

// FailedIceberg returns the fault for a problem with a catalog or its store.
func FailedIceberg(err error) *fault.Error {
	return fault.New(fault.UpstreamUnavailable, toldIceberg(ProblemIceberg(err)))
}

// normal returns the settings as they are stored.
func (i Iceberg) normal() Iceberg {
	if i.URI != "" {
		i.URI = strings.TrimRight(i.URI, "/") + "/"
	}

	i.Auth = cmp.Or(i.Auth, NoAuth)

	return i
}

// checkIceberg returns ValidationFailed for settings that are not used.
func (c *Connections) checkIceberg(want Iceberg, secret string) error {
	if _, err := c.checkAddress("iceberg.uri", want.URI); err != nil {
		return err
	}

	if want.TokenURI != "" {
		if _, err := c.checkAddress("iceberg.tokenUri", want.TokenURI); err != nil {
			return err
		}
	}

	if _, err := authorities(want.CA); err != nil {
		return fault.Invalid("iceberg.caCertificate", "must be certificates in PEM, and nothing else")
	}

	if !buckets.MatchString(want.Store.Bucket) {
		return fault.Invalid("iceberg.store.bucket", "is not the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens")
	}

	if err := c.checkEndpoint("iceberg.store.endpoint", want.Store.Endpoint); err != nil {
		return err
	}

	return checkCatalogSecret(want, secret)
}

func checkCatalogSecret(of Iceberg, secret string) error {
	var s icebergSecret
	if err := json.Unmarshal([]byte(secret), &s); err != nil {
		return err
	}

	if of.Auth == Bearer && !tokens.MatchString(s.Catalog) {
		return fault.Invalid("token", "must be printable ASCII without spaces")
	}

	return nil
}

// Tables reads the tables of a catalog and their files.
type Tables struct {
	settings  Iceberg
	secret    string
	base      string // address of the catalog with its prefix; empty until it was asked
	token     string
	client    *http.Client
	authorize *http.Client // of the server that gives tokens
	store     *blob.Store
	location  string // of the files: s3://bucket/prefix
	timeout   time.Duration
}

// tables returns the client of a connection to a catalog. The caller must call done when it is no longer needed.
func (c *Connections) tables(found Connection, secret string) (t *Tables, done func(), err error) {
	var s icebergSecret
	if err := json.Unmarshal([]byte(secret), &s); err != nil {
		return nil, nil, errKey
	}

	of := found.Iceberg
	t = &Tables{settings: of, secret: s.Catalog, timeout: c.Timeout}

	transports := []*http.Transport{}
	done = func() {
		for _, one := range transports {
			one.CloseIdleConnections()
		}
	}

	reach := func(text string) (*http.Client, error) {
		guarded, err := c.secured(text, of.CA)
		if err != nil {
			return nil, err
		}

		transports = append(transports, guarded)

		return &http.Client{Transport: guarded, Timeout: c.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
	}

	if t.client, err = reach(of.URI); err != nil {
		return nil, nil, err
	}

	if t.authorize, err = reach(cmp.Or(of.TokenURI, of.URI)); err != nil {
		return nil, nil, err
	}

	store, closeStore, err := c.storeAt(of.Store, s.Store, of.CA)
	if err != nil {
		return nil, nil, err
	}

	t.store, t.location = store, store.URI("")
	closeCatalog := done
	done = func() { closeCatalog(); closeStore() }

	return t, done, nil
}

// secured returns a transport to the host of an address that trusts also the given authorities.
func (c *Connections) secured(text, ca string) (*http.Transport, error) {
	address, err := url.Parse(text)
	if err != nil {
		return nil, err
	}

	// The operator may have changed the list since the connection was made.
	if !c.hosts.allow(address) {
		return nil, errHost
	}

	guarded := c.guarded(address, address.Hostname())

	return guarded, trust(guarded, ca)
}

// trust makes a transport trust these authorities instead of those of the operator, if there are any.
func trust(guarded *http.Transport, ca string) error {
	pool, err := authorities(ca)
	if err != nil || pool == nil {
		return err
	}

	secure := &tls.Config{}
	if guarded.TLSClientConfig != nil {
		secure = guarded.TLSClientConfig
	}

	secure.RootCAs, secure.MinVersion = pool, tls.VersionTLS12
	guarded.TLSClientConfig = secure

	return nil
}

// maxTable is the largest answer of a catalog: the metadata of a table with all its snapshots.
const maxTable = 64 << 20

// ask returns the body of an answer with status 200.
func ask(client *http.Client, request *http.Request, most int64) ([]byte, error) {
	request.Header.Set("User-Agent", "quern")
	request.Header.Set("Accept", "application/json")

	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}

	defer func() { _ = answer.Body.Close() }()

	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusGone:
		return nil, fault.Absent()
	default:
		return nil, &blob.RefusalError{Operation: request.Method, Status: answer.StatusCode}
	}

	body, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err == nil && int64(len(body)) > most {
		err = errTooLong
	}

	return body, err
}

var errTooLong = errors.New("the answer is too long")

// get asks the catalog.
func (t *Tables) get(ctx context.Context, address string, most int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}

	if t.token != "" {
		request.Header.Set("Authorization", "Bearer "+t.token)
	}

	return ask(t.client, request, most)
}

// begin gets a token and the configuration of the catalog. What it says about other hosts is not followed.
func (t *Tables) begin(ctx context.Context) error {
	if t.base != "" {
		return nil
	}

	if err := t.signIn(ctx); err != nil {
		return err
	}

	address := t.settings.URI + "v1/config"
	if t.settings.Warehouse != "" {
		address += "?warehouse=" + url.QueryEscape(t.settings.Warehouse)
	}

	body, err := t.get(ctx, address, maxAnswer)
	if err != nil {
		return err
	}

	var said struct {
		Defaults  map[string]string `json:"defaults"`
		Overrides map[string]string `json:"overrides"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return err
	}

	t.base = t.settings.URI + "v1/"

	for part := range strings.SplitSeq(cmp.Or(said.Overrides["prefix"], said.Defaults["prefix"]), "/") {
		if part == "." || part == ".." {
			return &blob.RefusalError{Operation: http.MethodGet, Status: http.StatusOK}
		}

		if part != "" {
			t.base += url.PathEscape(part) + "/"
		}
	}

	return nil
}

// signIn sets the token. The server that gives it is the catalog, or the one that the connection names.
func (t *Tables) signIn(ctx context.Context) error {
	switch t.settings.Auth {
	case Bearer:
		t.token = t.secret

		return nil
	case Client:
	default:
		return nil
	}

	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {t.settings.ClientID}, "client_secret": {t.secret}, "scope": {cmp.Or(t.settings.Scope, "catalog")}}
	address := cmp.Or(t.settings.TokenURI, t.settings.URI+"v1/oauth/tokens")

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}

	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")

	body, err := ask(t.authorize, request, maxAnswer)

	// RFC 6749: 400 is also for credentials that are not valid.
	if refusal, isRefusal := errors.AsType[*blob.RefusalError](err); isRefusal && refusal.Status == http.StatusBadRequest {
		err = &blob.RefusalError{Operation: http.MethodPost, Status: http.StatusUnauthorized}
	}

	if err != nil {
		return err
	}

	var said struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return err
	}

	if !tokens.MatchString(said.Token) {
		return &blob.RefusalError{Operation: http.MethodPost, Status: http.StatusOK}
	}

	t.token = said.Token

	return nil
}

// Load returns the metadata of a table, as JSON. The parts of the namespace are separated by dots.
//
// Errors are for FailedIceberg.
func (t *Tables) Load(ctx context.Context, namespace, table string) (metadata []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*t.timeout)
	defer cancel()

	if err := t.begin(ctx); err != nil {
		return nil, err
	}

	levels := strings.ReplaceAll(namespace, ".", "\x1f")

	body, err := t.get(ctx, t.base+"namespaces/"+url.PathEscape(levels)+"/tables/"+url.PathEscape(table), maxTable)
	if err != nil {
		return nil, err
	}

	var said struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, err
	}

	if len(said.Metadata) == 0 {
		return nil, &blob.RefusalError{Operation: http.MethodGet, Status: http.StatusOK}
	}

	return said.Metadata, nil
}

// ErrOutside means that a table has files that are not under the location of its connection.
var ErrOutside = errors.New("the file is not in the store of the connection")

// Open opens a file of a table.
//
// Faults: NotFound, and ErrOutside. Other errors are for FailedIceberg.
func (t *Tables) Open(ctx context.Context, address string) (io.ReadCloser, error) {
	key, isBelow := t.keyOf(address)
	if !isBelow {
		return nil, ErrOutside
	}

	return t.store.Read(ctx, key, 0, -1)
}

// Has reports whether a file is under the location of the connection.
func (t *Tables) Has(address string) bool {
	_, isBelow := t.keyOf(address)

	return isBelow
}

func (t *Tables) keyOf(address string) (key string, isBelow bool) {
	for _, scheme := range []string{"s3a://", "s3n://"} {
		if rest, isOther := strings.CutPrefix(address, scheme); isOther {
			address = "s3://" + rest
		}
	}

	key, isBelow = strings.CutPrefix(address, t.location)

	return key, isBelow && key != ""
}

// tryIceberg loads the configuration of the catalog and lists its namespaces, and lists the bucket of its store.
func (c *Connections) tryIceberg(ctx context.Context, found Connection, secret string) string {
	t, done, err := c.tables(found, secret)
	if err != nil {
		return ProblemIceberg(err)
	}
	defer done()

	ctx, cancel := context.WithTimeout(ctx, 4*c.Timeout)
	defer cancel()

	if err := t.begin(ctx); err != nil {
		return ProblemIceberg(err)
	}

	if _, err := t.get(ctx, t.base+"namespaces?pageSize=1", maxAnswer); err != nil {
		return ProblemIceberg(err)
	}

	for _, err := range t.store.List(ctx, "") {
		if err != nil {
			return ProblemIceberg(err)
		}

		break
	}

	return ""
}
