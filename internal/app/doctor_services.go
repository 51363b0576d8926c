package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/postgres"
)

// store writes, reads and removes an object through the address that the service uses.
func (d doctor) store(ctx context.Context) []finding {
	const name = "object store"

	store, err := openStore(d.config.S3, nil, nil)
	if err != nil {
		return []finding{fail(name, causeOf(err), "correct QUERN_S3_ENDPOINT and QUERN_S3_PATH_STYLE")}
	}

	if err := store.Probe(ctx); err != nil {
		return []finding{storeFailed(name, err)}
	}

	return []finding{good(name, "an object of the bucket "+d.config.S3.Bucket+" was written, read and removed"), d.epoch(ctx, store)}
}

// epoch checks whether the location in the object store belongs to the database.
func (d doctor) epoch(ctx context.Context, store *blob.Store) finding {
	const name = "store epoch"

	held, heldErr := store.Epoch(ctx)

	db, err := d.open(ctx, d.config.Database)
	if err != nil || d.config.Database.URL.Reveal() == "" {
		return warn(name, "not compared, because the database cannot be reached", "fix the database first")
	}
	defer db.Close()

	mine, err := db.Epoch(ctx)
	empty := fault.Is(heldErr, fault.NotFound)

	switch {
	case postgres.RefusalOf(err) == postgres.NoRights:
		return warn(name, "not compared, because the role cannot read it: "+causeOf(err), "as the owner: quernd migrate --grant ROLE; as a superuser: GRANT EXECUTE ON FUNCTION pg_control_system() TO the role")
	case err != nil:
		return warn(name, "not compared: "+causeOf(err), "fix the database first")
	case empty && mine.Bound:
		return fail(name, "this database was used with another bucket or prefix, or the bucket was emptied", claimFix)
	case empty:
		return good(name, "the service will bind the bucket at its first start")
	case heldErr != nil:
		return storeFailed(name, heldErr)
	}

	if err := compare(held, mine); err != nil && !errors.Is(err, errBehind) {
		return fail(name, err.Error(), claimFix)
	}

	if err := checkAddress(ctx, db, store); refused(err) {
		return fail(name, err.Error(), "correct QUERN_S3_BUCKET and QUERN_S3_PREFIX")
	} else if err != nil {
		return warn(name, "not compared: "+causeOf(err), "fix the database first")
	}

	return good(name, fmt.Sprintf("database and bucket belong together, epoch %d", mine.Number))
}

const claimFix = "correct QUERN_S3_BUCKET, QUERN_S3_PREFIX and QUERN_DATABASE_URL, or run `quernd store claim` to continue with this database and this bucket"

// storeFailed returns the finding for an error of the object store.
func storeFailed(name string, err error) finding {
	found := causeOf(err)

	refusal, answered := errors.AsType[*blob.RefusalError](err)
	if !answered {
		return fail(name, "it cannot be reached: "+found, "check that it is running, and check QUERN_S3_ENDPOINT, its CA_FILE and PROXY")
	}

	switch refusal.Code {
	case "NoSuchBucket":
		return fail(name, "the bucket does not exist: "+found, "create the bucket, or correct QUERN_S3_BUCKET")
	case "SignatureDoesNotMatch":
		return fail(name, "it refuses the signature: "+found, "correct QUERN_S3_SECRET_KEY")
	case "InvalidAccessKeyId":
		return fail(name, "it does not know the key: "+found, "correct QUERN_S3_ACCESS_KEY")
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException":
		return fail(name, "the bucket is in another region or at another endpoint: "+found, "correct QUERN_S3_REGION and QUERN_S3_ENDPOINT")
	case "RequestTimeTooSkewed":
		return fail(name, "its clock differs from the clock of this machine: "+found, "synchronise both with NTP (timedatectl)")
	}

	if refusal.Status == http.StatusForbidden {
		return fail(name, "the key does not have the right: "+found, "grant it the rights in docs/operations.md, The object store")
	}

	return fail(name, found, "see docs/operations.md, The object store, for what it must support")
}

// publicStore uploads a part as a browser would: it sends the part to the presigned address, and a preflight request.
func (d doctor) publicStore(ctx context.Context) []finding {
	const name, cors = "public store", "store CORS"

	setting := "QUERN_S3_PUBLIC_ENDPOINT"
	if d.config.S3.PublicEndpoint == "" {
		setting = "QUERN_S3_ENDPOINT"
	}

	store, err := openStore(d.config.S3, nil, nil)
	if err != nil {
		return nil // the check of the object store reports it
	}

	part, err := store.BeginProbe(ctx)
	if err != nil {
		return []finding{warn(name, "not checked, because the store does not accept uploads", "fix the object store first")}
	}
	defer part.Drop()

	client, err := httpClient(config.Connection{CAFile: d.config.S3.CAFile, Timeout: d.config.S3.Timeout})
	if err != nil {
		return []finding{fail(name, causeOf(err), "correct QUERN_S3_CA_FILE")}
	}

	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	status, _, err := send(ctx, client, http.MethodPut, part.Address, part.Content, nil)
	if err != nil {
		return []finding{fail(name, "clients cannot reach it: "+causeOf(err), "set "+setting+" to the address at which clients reach the store")}
	}

	if status != http.StatusOK {
		return []finding{fail(name, fmt.Sprintf("it refuses a presigned part: status %d", status),
			"set "+setting+" to an address of the same store; no proxy may change host, path or headers, because they are signed")}
	}

	return []finding{good(name, "a part was sent to a presigned address"), d.preflight(ctx, client, cors, part.Address)}
}

// preflight sends a preflight request for every origin whose pages may call the API, or for that of the service itself
// if none is configured.
func (d doctor) preflight(ctx context.Context, client *http.Client, name, address string) finding {
	origins, refused := d.config.Server.CORSOrigins, []string{}
	if len(origins) == 0 {
		origins = []string{string(d.config.Server.PublicURL)}
	}

	for _, origin := range origins {
		status, answer, err := send(ctx, client, http.MethodOptions, address, nil, http.Header{
			"Origin": {origin}, "Access-Control-Request-Method": {http.MethodPut},
		})
		if err != nil {
			return fail(name, causeOf(err), "check that proxies in front of the store forward OPTIONS")
		}

		allowed := answer.Get("Access-Control-Allow-Origin")
		methods := strings.Split(strings.ReplaceAll(answer.Get("Access-Control-Allow-Methods"), " ", ""), ",")

		if status >= http.StatusMultipleChoices || (allowed != origin && allowed != "*") || !slices.Contains(methods, http.MethodPut) {
			refused = append(refused, origin)
		}
	}

	found, fix := "pages of "+strings.Join(refused, ", ")+" cannot upload", "quernd store cors "+strings.Join(origins, " ")

	switch {
	case len(refused) == 0:
		return good(name, "pages of "+strings.Join(origins, ", ")+" can upload")
	case len(d.config.Server.CORSOrigins) == 0: // perhaps no such page exists
		return warn(name, found, fix)
	default:
		return fail(name, found, fix)
	}
}

func send(ctx context.Context, client *http.Client, method, address string, content []byte, header http.Header) (status int, answer http.Header, err error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		return 0, nil, err
	}

	if header != nil {
		request.Header = header
	}

	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}

	return response.StatusCode, response.Header, response.Body.Close()
}

// issuer reads the discovery document and the keys of the issuer.
func (d doctor) issuer(ctx context.Context) []finding {
	const name = "issuer"

	c := d.config.OIDC

	examiner, err := d.authenticator()
	if err != nil {
		return []finding{fail(name, causeOf(err), "correct QUERN_OIDC_ALGORITHMS and QUERN_OIDC_CA_FILE")}
	}

	found, err := examiner.Discover(ctx)

	switch {
	case found.Issuer != "" && found.Issuer != string(c.Issuer):
		return []finding{fail(name, fmt.Sprintf("its name is %s, the setting is %s", found.Issuer, c.Issuer),
			"set QUERN_OIDC_ISSUER to exactly that name, including the last slash")}
	case err != nil:
		return []finding{fail(name, "its document or keys cannot be read: "+causeOf(err),
			"check that it is running, and check QUERN_OIDC_ISSUER, its CA_FILE and PROXY; /.well-known/openid-configuration below it must respond")}
	case found.Usable == 0:
		return []finding{fail(name, fmt.Sprintf("none of its %d keys signs with %s", found.Keys, strings.Join(c.Algorithms, ", ")),
			"configure it to sign with one of these, or add its algorithm to QUERN_OIDC_ALGORITHMS")}
	case len(found.Claims) > 0 && !slices.Contains(found.Claims, c.UsernameClaim):
		return []finding{warn(name, "it does not list the claim "+c.UsernameClaim, "check with --token whether access tokens have it, or correct QUERN_OIDC_USERNAME_CLAIM")}
	}

	return []finding{good(name, fmt.Sprintf("%s, usable keys: %d", found.Issuer, found.Usable))}
}

// examineToken checks an access token as the service does. It reports some claims of the token but never the token
// itself.
func (d doctor) examineToken(ctx context.Context) []finding {
	const name = "token"

	c := d.config.OIDC
	if d.token == "" {
		one := good(name, fmt.Sprintf("no token given; a token must have aud %s and the claim %s", strings.Join(c.Audience, " or "), c.UsernameClaim))
		one.Fix = "to check an access token, use QUERN_DOCTOR_TOKEN or --token"

		return []finding{one}
	}

	examiner, err := d.authenticator()
	if err != nil {
		return nil // the check of the issuer reports it
	}

	found, err := examiner.Examine(ctx, d.token)
	if err != nil {
		return []finding{warn(name, "not checked, because the keys of the issuer cannot be read", "fix the issuer first")}
	}

	if found.Problem != "" {
		return []finding{d.tokenRefused(found)}
	}

	switch {
	case found.Username == "":
		return []finding{fail(name, fmt.Sprintf("the claim %s is missing or not a text", c.UsernameClaim),
			"configure the issuer to add it to access tokens, or set QUERN_OIDC_USERNAME_CLAIM to a claim that they have")}
	case !found.Groups:
		return []finding{warn(name, fmt.Sprintf("accepted for %s; the claim %s is missing, so the user has no groups", found.Username, c.GroupsClaim),
			"add a mapper for groups at the issuer, or correct QUERN_OIDC_GROUPS_CLAIM")}
	default:
		return []finding{good(name, "accepted for "+found.Username)}
	}
}

func (d doctor) tokenRefused(found auth.Examined) finding {
	const name = "token"

	c := d.config.OIDC

	switch found.Problem {
	case auth.TokenMalformed:
		return fail(name, "it is not an access token in JWT format", "use an access token of the issuer, not an API token, and configure the issuer to issue JWTs")
	case auth.TokenIssuer:
		return fail(name, fmt.Sprintf("the iss of the token is %q, the setting QUERN_OIDC_ISSUER is %q", found.Issuer, c.Issuer), "set QUERN_OIDC_ISSUER to the iss of the tokens")
	case auth.TokenAudience:
		return fail(name, fmt.Sprintf("its aud is %q and contains none of %q", found.Audience, c.Audience),
			"add a mapper at the issuer that adds the audience to access tokens, or correct QUERN_OIDC_AUDIENCE")
	case auth.TokenExpired:
		return fail(name, "it expired at "+found.Expiry.UTC().Format(time.RFC3339), "use a new token, and compare the clocks")
	case auth.TokenEarly:
		return fail(name, "it is not valid yet", "compare the clocks")
	case auth.TokenKind:
		return fail(name, "it is an ID token or a refresh token", "send the access token")
	case auth.TokenSubject:
		return fail(name, "the claim sub is missing", "configure the issuer to add it to access tokens")
	default:
		return fail(name, "no key of the issuer matches its signature", "check that it comes from this issuer, and that QUERN_OIDC_ALGORITHMS contains its algorithm")
	}
}

// model makes one completion with a JSON schema.
func (d doctor) model(ctx context.Context, p config.NamedProvider, model string) []finding {
	name := "model " + p.Name + "/" + model
	setting := config.ProviderPrefix(p.Name)

	client, err := httpClient(config.Connection{CAFile: p.CAFile, Proxy: p.Proxy, Timeout: p.Timeout})
	if err != nil {
		return []finding{fail(name, causeOf(err), "correct "+setting+"CA_FILE")}
	}

	began := time.Now()

	answer, err := llm.Probe(ctx, llm.Provider{
		Name: p.Name, Kind: llm.Kind(p.Kind), URL: string(p.URL), Key: p.Key.Reveal(), Concurrency: 1, Timeout: p.Timeout, Client: client,
	}, model)
	status := llm.StatusOf(err)

	switch {
	case err == nil:
		return []finding{good(name, fmt.Sprintf("its response matches the schema: %s in %s", answer, time.Since(began).Round(time.Millisecond)))}
	case errors.Is(err, llm.ErrSchema):
		return []finding{fail(name, fmt.Sprintf("its response does not match the JSON schema: %q", answer),
			"use a model or a server with structured output (response_format json_schema)")}
	case errors.Is(err, llm.ErrTruncated), errors.Is(err, llm.ErrRefused):
		return []finding{fail(name, err.Error(), "use another model")}
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return []finding{fail(name, "the provider refuses the key: "+causeOf(err), "correct "+setting+"KEY")}
	case status == http.StatusNotFound:
		return []finding{fail(name, "the provider does not have this model: "+causeOf(err), "correct the name of the model in QUERN_MODELS, or "+setting+"URL")}
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return []finding{fail(name, "the provider refuses a request with a schema: "+causeOf(err),
			"use a model or a server with structured output (response_format json_schema)")}
	case status == http.StatusTooManyRequests:
		return []finding{warn(name, "the provider limits requests: "+causeOf(err), "check its limits for this key")}
	default:
		return []finding{fail(name, "no response: "+causeOf(err), "check that "+setting+"URL responds, and check "+setting+"PROXY and CA_FILE")}
	}
}

// tracing sends an empty list of spans to the tracing store.
func (d doctor) tracing(ctx context.Context) []finding {
	const name = "tracing"

	store, err := openTracing(ctx, d.config.Tracing, d.log)
	if err != nil {
		return []finding{fail(name, causeOf(err), "correct QUERN_TRACING_ENDPOINT, KEY and HEADERS")}
	}
	defer store.Stop(ctx)

	status, err := store.Probe(ctx)

	switch {
	case err != nil:
		return []finding{fail(name, "it cannot be reached: "+causeOf(err), "check that it is running, and check QUERN_TRACING_ENDPOINT")}
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return []finding{fail(name, fmt.Sprintf("it refuses the key: status %d", status), "correct QUERN_TRACING_KEY")}
	case status >= http.StatusMultipleChoices:
		return []finding{fail(name, fmt.Sprintf("it does not accept spans at this address: status %d", status), "correct QUERN_TRACING_ENDPOINT, which must not have a path, and QUERN_TRACING_KIND")}
	default:
		return []finding{good(name, d.config.Tracing.Kind+" accepts spans")}
	}
}
