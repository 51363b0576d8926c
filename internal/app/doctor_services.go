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
	"quern.dev/quern/internal/llm"
)

// store writes, reads and removes an object by the address that the service uses.
func (d doctor) store(ctx context.Context) []finding {
	const name = "object store"

	store, err := openStore(d.config.S3)
	if err != nil {
		return []finding{fail(name, causeOf(err), "correct QUERN_S3_ENDPOINT and QUERN_S3_PATH_STYLE")}
	}

	if err := store.Probe(ctx); err != nil {
		return []finding{storeFailed(name, err)}
	}

	return []finding{good(name, "an object of the bucket "+d.config.S3.Bucket+" was written, read and removed")}
}

// storeFailed says what an answer of the store means.
func storeFailed(name string, err error) finding {
	found := causeOf(err)

	refusal, answered := errors.AsType[*blob.RefusalError](err)
	if !answered {
		return fail(name, "it cannot be reached: "+found, "see whether it runs and QUERN_S3_ENDPOINT, its CA_FILE and PROXY are right")
	}

	switch refusal.Code {
	case "NoSuchBucket":
		return fail(name, "there is no such bucket: "+found, "make the bucket, or correct QUERN_S3_BUCKET")
	case "SignatureDoesNotMatch":
		return fail(name, "it refuses the signature: "+found, "correct QUERN_S3_SECRET_KEY")
	case "InvalidAccessKeyId":
		return fail(name, "it does not know the key: "+found, "correct QUERN_S3_ACCESS_KEY")
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException":
		return fail(name, "the bucket is elsewhere: "+found, "correct QUERN_S3_REGION and QUERN_S3_ENDPOINT")
	case "RequestTimeTooSkewed":
		return fail(name, "its clock and this machine's differ: "+found, "synchronise both with NTP (timedatectl)")
	}

	if refusal.Status == http.StatusForbidden {
		return fail(name, "the key has not the right: "+found, "give it the rights of docs/operations.md, The object store")
	}

	return fail(name, found, "docs/operations.md, The object store, has what it must be able to do")
}

// publicStore sends a part as a page of a browser would: it asks whether it may, and then sends it to the presigned address.
func (d doctor) publicStore(ctx context.Context) []finding {
	const name, cors = "public store", "store CORS"

	setting := "QUERN_S3_PUBLIC_ENDPOINT"
	if d.config.S3.PublicEndpoint == "" {
		setting = "QUERN_S3_ENDPOINT"
	}

	store, err := openStore(d.config.S3)
	if err != nil {
		return nil // the check of the store says so
	}

	part, err := store.BeginProbe(ctx)
	if err != nil {
		return []finding{warn(name, "not tried, because the store takes no upload", "mend the object store first")}
	}
	defer part.Drop()

	client, err := httpClient(config.Connection{CAFile: d.config.S3.CAFile, Timeout: d.config.S3.Timeout})
	if err != nil {
		return []finding{fail(name, causeOf(err), "correct QUERN_S3_CA_FILE")}
	}

	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	status, _, err := send(ctx, client, http.MethodPut, part.Address, part.Content, nil)
	if err != nil {
		return []finding{fail(name, "clients cannot reach it: "+causeOf(err), "set "+setting+" to the address by which clients reach the store")}
	}

	if status != http.StatusOK {
		return []finding{fail(name, fmt.Sprintf("it refuses a presigned part: status %d", status),
			"let "+setting+" lead to the same store, past whatever changes host, path or headers: they are signed")}
	}

	return []finding{good(name, "a part was sent to a presigned address"), d.preflight(ctx, client, cors, part.Address)}
}

// preflight asks for every origin whose pages may call the API; without one, for that of the service itself.
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
			return fail(name, causeOf(err), "see whether what stands before the store lets OPTIONS through")
		}

		allowed := answer.Get("Access-Control-Allow-Origin")
		methods := strings.Split(strings.ReplaceAll(answer.Get("Access-Control-Allow-Methods"), " ", ""), ",")

		if status >= http.StatusMultipleChoices || (allowed != origin && allowed != "*") || !slices.Contains(methods, http.MethodPut) {
			refused = append(refused, origin)
		}
	}

	found, fix := "pages of "+strings.Join(refused, ", ")+" may not upload", "quernd store cors "+strings.Join(origins, " ")

	switch {
	case len(refused) == 0:
		return good(name, "pages of "+strings.Join(origins, ", ")+" may upload")
	case len(d.config.Server.CORSOrigins) == 0: // perhaps nobody has such a page
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

// issuer reads its discovery document and its keys.
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
		return []finding{fail(name, fmt.Sprintf("it calls itself %s, the setting says %s", found.Issuer, c.Issuer),
			"set QUERN_OIDC_ISSUER to exactly what it calls itself, to the last slash")}
	case err != nil:
		return []finding{fail(name, "its document or keys cannot be read: "+causeOf(err),
			"see whether it runs and QUERN_OIDC_ISSUER, its CA_FILE and PROXY are right; /.well-known/openid-configuration must answer below it")}
	case found.Usable == 0:
		return []finding{fail(name, fmt.Sprintf("it has keys (%d), and none signs with %s", found.Keys, strings.Join(c.Algorithms, ", ")),
			"let it sign with one of these, or add its algorithm to QUERN_OIDC_ALGORITHMS")}
	case len(found.Claims) > 0 && !slices.Contains(found.Claims, c.UsernameClaim):
		return []finding{warn(name, "it does not list the claim "+c.UsernameClaim, "see with --token whether access tokens have it, or correct QUERN_OIDC_USERNAME_CLAIM")}
	}

	return []finding{good(name, fmt.Sprintf("%s, usable keys: %d", found.Issuer, found.Usable))}
}

// examineToken says what the service makes of an access token; of the token itself it says nothing but some claims.
func (d doctor) examineToken(ctx context.Context) []finding {
	const name = "token"

	c := d.config.OIDC
	if d.token == "" {
		one := good(name, fmt.Sprintf("none given; needed are aud %s and the claim %s", strings.Join(c.Audience, " or "), c.UsernameClaim))
		one.Fix = "an access token in QUERN_DOCTOR_TOKEN or after --token is looked at"

		return []finding{one}
	}

	examiner, err := d.authenticator()
	if err != nil {
		return nil // the check of the issuer says so
	}

	found, err := examiner.Examine(ctx, d.token)
	if err != nil {
		return []finding{warn(name, "not looked at, because the issuer's keys cannot be had", "mend the issuer first")}
	}

	if found.Problem != "" {
		return []finding{d.tokenRefused(found)}
	}

	switch {
	case found.Username == "":
		return []finding{fail(name, fmt.Sprintf("the claim %s is missing or no text", c.UsernameClaim),
			"let the issuer put it into access tokens, or set QUERN_OIDC_USERNAME_CLAIM to a claim that it has")}
	case !found.Groups:
		return []finding{warn(name, fmt.Sprintf("accepted for %s; the claim %s is missing, so nobody is in a group", found.Username, c.GroupsClaim),
			"a mapper for groups at the issuer, or QUERN_OIDC_GROUPS_CLAIM")}
	default:
		return []finding{good(name, "accepted for "+found.Username)}
	}
}

func (d doctor) tokenRefused(found auth.Examined) finding {
	const name = "token"

	c := d.config.OIDC

	switch found.Problem {
	case auth.TokenMalformed:
		return fail(name, "it is not an access token in the form of a JWT", "take one of the issuer's, not an API token, and let the issuer give out JWTs")
	case auth.TokenIssuer:
		return fail(name, fmt.Sprintf("its iss is %q, the setting says %q", found.Issuer, c.Issuer), "set QUERN_OIDC_ISSUER to the iss of the tokens")
	case auth.TokenAudience:
		return fail(name, fmt.Sprintf("its aud is %q and has none of %q", found.Audience, c.Audience),
			"a mapper at the issuer that adds the audience to access tokens, or set QUERN_OIDC_AUDIENCE")
	case auth.TokenExpired:
		return fail(name, "it expired at "+found.Expiry.UTC().Format(time.RFC3339), "take a fresh one, and compare the clocks")
	case auth.TokenEarly:
		return fail(name, "it is not valid yet", "compare the clocks")
	case auth.TokenKind:
		return fail(name, "it is an ID token or a refresh token", "send the access token")
	case auth.TokenSubject:
		return fail(name, "the claim sub is missing", "let the issuer put it into access tokens")
	default:
		return fail(name, "no key of the issuer fits its signature", "see whether it comes from this issuer, and whether QUERN_OIDC_ALGORITHMS has its algorithm")
	}
}

// model lets a model answer once with a schema.
func (d doctor) model(ctx context.Context, p config.NamedProvider, model string) []finding {
	name := "model " + p.Name + "/" + model
	setting := "QUERN_MODEL_" + strings.ToUpper(strings.ReplaceAll(p.Name, "-", "_")) + "_"

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
		return []finding{good(name, fmt.Sprintf("answered with the schema: %s in %s", answer, time.Since(began).Round(time.Millisecond)))}
	case errors.Is(err, llm.ErrSchema):
		return []finding{fail(name, fmt.Sprintf("it does not keep to a JSON schema; it answered %q", answer),
			"use a model or a server with structured output (response_format json_schema)")}
	case errors.Is(err, llm.ErrTruncated), errors.Is(err, llm.ErrRefused):
		return []finding{fail(name, err.Error(), "use another model")}
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return []finding{fail(name, "the provider refuses the key: "+causeOf(err), "correct "+setting+"KEY")}
	case status == http.StatusNotFound:
		return []finding{fail(name, "the provider does not know it: "+causeOf(err), "correct the model's name in QUERN_MODELS, or "+setting+"URL")}
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return []finding{fail(name, "the provider refuses a request with a schema: "+causeOf(err),
			"use a model or a server with structured output (response_format json_schema)")}
	case status == http.StatusTooManyRequests:
		return []finding{warn(name, "the provider has too much to do: "+causeOf(err), "see its limits for this key")}
	default:
		return []finding{fail(name, "no answer: "+causeOf(err), "see whether "+setting+"URL answers, and "+setting+"PROXY and CA_FILE are right")}
	}
}

// tracing sends no spans to where spans go.
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
		return []finding{fail(name, "it cannot be reached: "+causeOf(err), "see whether it runs and QUERN_TRACING_ENDPOINT is right")}
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return []finding{fail(name, fmt.Sprintf("it refuses the key: status %d", status), "correct QUERN_TRACING_KEY")}
	case status >= http.StatusMultipleChoices:
		return []finding{fail(name, fmt.Sprintf("it does not take spans there: status %d", status), "correct QUERN_TRACING_ENDPOINT, which has no path of an operation, and QUERN_TRACING_KIND")}
	default:
		return []finding{good(name, d.config.Tracing.Kind+" takes spans")}
	}
}
