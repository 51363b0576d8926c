package e2e

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"html"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/stack"
)

// realm is an issuer in the stack's Keycloak, with the users and clients of stack/keycloak-realm.json.
type realm struct {
	t          *testing.T
	base, name string     // base is the address of Keycloak in tokens
	shared     *sharedKey // nil if the realm belongs to the test
}

const (
	client      = "quern-console"
	redirectURI = "http://127.0.0.1:9/"
)

// newRealm creates a realm that is deleted when the test ends. It is for tests that change keys or users. Keycloak takes seconds
// to create a realm, so all other tests use the shared realm of start.
func newRealm(t *testing.T) *realm {
	t.Helper()

	name, err := createRealm(t.Context())
	require.NoError(t, err, "is the stack running? make stack")
	t.Cleanup(func() { require.NoError(t, deleteRealm(name)) })

	return &realm{t: t, base: stack.Env(t, "QUERN_TEST_KEYCLOAK_URL"), name: name}
}

// tokenLifespan is long, because tests wait for each other.
const tokenLifespan = time.Hour

func createRealm(ctx context.Context) (name string, err error) {
	content, err := os.ReadFile("../stack/keycloak-realm.json")
	if err != nil {
		return "", err
	}

	var representation map[string]any
	if err := json.Unmarshal(content, &representation); err != nil {
		return "", err
	}

	name = "e2e-" + uuid.NewString()
	representation["realm"] = name
	representation["accessTokenLifespan"] = int(tokenLifespan.Seconds())

	_, err = administer(ctx, http.MethodPost, "", representation)

	return name, err
}

func deleteRealm(name string) error {
	_, err := administer(context.Background(), http.MethodDelete, "/"+name, nil)

	return err
}

// through returns the same realm as seen through a proxy at another address. Keycloak takes its issuer from the Host header, so
// tokens from there name the proxy, and quernd with that issuer reads its keys through the proxy.
func (r *realm) through(proxyAddress string) *realm {
	return &realm{t: r.t, base: "http://" + proxyAddress, name: r.name}
}

func (r *realm) issuer() string { return r.base + "/realms/" + r.name }

func (r *realm) endpoint(name string) string {
	return r.issuer() + "/protocol/openid-connect/" + name
}

// tokens is the result of a sign-in.
type tokens struct {
	Access string `json:"access_token"`
	ID     string `json:"id_token"`
}

// password returns the access token of a sign-in by the password grant.
func (r *realm) password(user string) string {
	r.t.Helper()

	return r.tokens(user).Access
}

func (r *realm) tokens(user string) tokens {
	r.t.Helper()

	signIn := func() tokens {
		return r.grant(url.Values{
			"grant_type": {"password"}, "username": {user}, "password": {user + "-pw"}, "scope": {"openid"},
		})
	}

	if r.shared == nil {
		return signIn()
	}

	return common.tokens(r.t, user, signIn)
}

// codePKCE signs in through the login page by the code flow with PKCE.
func (r *realm) codePKCE(user string) tokens {
	r.t.Helper()

	verifier := rand.Text() + rand.Text()
	challenge := sha256.Sum256([]byte(verifier))
	back := r.login(user, url.Values{
		"response_type": {"code"}, "code_challenge_method": {"S256"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])},
	})

	return r.grant(url.Values{
		"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")},
		"code_verifier": {verifier}, "redirect_uri": {redirectURI},
	})
}

// implicit signs in through the login page by the implicit flow.
func (r *realm) implicit(user string) tokens {
	r.t.Helper()

	back := r.login(user, url.Values{"response_type": {"id_token token"}, "nonce": {rand.Text()}})
	fragment, err := url.ParseQuery(back.Fragment)
	require.NoError(r.t, err)

	return tokens{Access: fragment.Get("access_token"), ID: fragment.Get("id_token")}
}

var formAction = regexp.MustCompile(`<form[^>]*\saction="([^"]+)"`)

// login submits the login page and returns the address to which Keycloak redirects. Its cookies are Secure, which browsers accept
// on loopback and Go's cookie jar does not, so login copies them itself.
func (r *realm) login(user string, query url.Values) *url.URL {
	r.t.Helper()
	query.Set("client_id", client)

	return r.loginAs(user, r.endpoint("auth"), query)
}

// loginAs is login at an address, for the client in the query.
func (r *realm) loginAs(user, address string, query url.Values) *url.URL {
	r.t.Helper()
	maps.Copy(query, url.Values{"redirect_uri": {redirectURI}, "scope": {"openid"}, "state": {rand.Text()}})

	request, err := http.NewRequest(http.MethodGet, address+"?"+query.Encode(), nil)
	require.NoError(r.t, err)

	page := r.ask(request, http.StatusOK)
	action := formAction.FindStringSubmatch(page.body)
	require.NotNil(r.t, action, "no login form: %s", page.body)

	request = newForm(r.t, html.UnescapeString(action[1]), url.Values{"username": {user}, "password": {user + "-pw"}})
	for _, cookie := range (&http.Response{Header: page.header}).Cookies() {
		request.AddCookie(cookie)
	}

	back, err := url.Parse(r.ask(request, http.StatusFound).header.Get("Location"))
	require.NoError(r.t, err)
	require.Equal(r.t, redirectURI, back.Scheme+"://"+back.Host+back.Path)

	return back
}

func (r *realm) grant(form url.Values) (got tokens) {
	r.t.Helper()
	form.Set("client_id", client)
	r.ask(newForm(r.t, r.endpoint("token"), form), http.StatusOK).json(r.t, &got)

	return got
}

func newForm(t *testing.T, address string, form url.Values) *http.Request {
	t.Helper()

	request, err := formRequest(t.Context(), address, form)
	require.NoError(t, err)

	return request
}

func formRequest(ctx context.Context, address string, form url.Values) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err == nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}

	return request, err
}

// ask sends a request to Keycloak, which must return this status.
func (r *realm) ask(request *http.Request, status int) *answer {
	r.t.Helper()

	// Cleanup functions call this after the context of the test has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.t.Context()), 10*patience)
	defer cancel()

	answer, err := try(request.WithContext(ctx))
	require.NoError(r.t, err, "is the stack running? make stack")
	require.Equal(r.t, status, answer.status, "%s %s: %s", request.Method, request.URL.Path, answer.body)

	return answer
}

// administer calls Keycloak's admin interface. path begins after /admin/realms.
func (r *realm) administer(method, path string, body any) *answer {
	r.t.Helper()

	answer, err := administer(context.WithoutCancel(r.t.Context()), method, path, body)
	require.NoError(r.t, err)

	return answer
}

// administer calls Keycloak directly and not through a proxy, so that simulated outages do not affect it.
func administer(ctx context.Context, method, path string, body any) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*patience) // Keycloak takes minutes to create or delete a realm when the machine is very busy.
	defer cancel()

	keycloak, err := stack.Lookup("QUERN_TEST_KEYCLOAK_URL")
	if err != nil {
		return nil, err
	}

	secret, err := stack.Lookup("QUERN_TEST_KEYCLOAK_ADMIN_PASSWORD")
	if err != nil {
		return nil, err
	}

	signIn, err := formRequest(ctx, keycloak+"/realms/master/protocol/openid-connect/token", url.Values{
		"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {"admin"}, "password": {secret},
	})
	if err != nil {
		return nil, err
	}

	signedIn, err := succeed(signIn)
	if err != nil {
		return nil, err
	}

	var admin tokens
	if err := json.Unmarshal([]byte(signedIn.body), &admin); err != nil {
		return nil, err
	}

	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}

	request, err := http.NewRequestWithContext(ctx, method, keycloak+"/admin/realms"+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}

	request.Header.Set("Authorization", "Bearer "+admin.Access)
	request.Header.Set("Content-Type", "application/json")

	return succeed(request)
}

// succeed sends a request whose answer must not be an error.
func succeed(request *http.Request) (*answer, error) {
	answer, err := try(request)
	if err == nil && answer.status >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %d %s", request.Method, request.URL.Path, answer.status, answer.body)
	}

	return answer, err
}

// rotate adds a new key to the realm, which signs from now on, and returns its component.
func (r *realm) rotate(t *testing.T) string {
	t.Helper()

	return r.addKey("rsa-generated", map[string][]string{"priority": {big.NewInt(time.Now().UnixMilli()).String()}})
}

// removeKey removes a key from the realm. Its tokens are no longer valid from then on.
func (r *realm) removeKey(t *testing.T, component string) {
	t.Helper()
	r.administer(http.MethodDelete, "/"+r.name+"/components/"+component, nil)
}

func (r *realm) addKey(provider string, config map[string][]string) (component string) {
	r.t.Helper()

	var parent struct{ ID string }
	r.administer(http.MethodGet, "/"+r.name, nil).json(r.t, &parent)

	maps.Copy(config, map[string][]string{"enabled": {"true"}, "active": {"true"}, "algorithm": {"RS256"}})
	location := r.administer(http.MethodPost, "/"+r.name+"/components", map[string]any{
		"name": provider + " " + uuid.NewString(), "providerId": provider,
		"providerType": "org.keycloak.keys.KeyProvider", "parentId": parent.ID, "config": config,
	}).header.Get("Location")

	return location[strings.LastIndex(location, "/")+1:]
}

// signer signs tokens with a key that the realm publishes. They are valid tokens of the realm with any claims.
type signer struct {
	realm     *realm
	key       *rsa.PrivateKey
	keyID     string
	component string
}

// importKey adds a key to the realm whose private part the test has. Keycloak continues to sign with its own key.
func (r *realm) importKey(t *testing.T) *signer {
	t.Helper()

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: r.name}, NotAfter: time.Now().Add(24 * time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	require.NoError(t, err)

	encode := func(kind string, content []byte) []string {
		return []string{string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))}
	}
	s := &signer{realm: r, key: key, component: r.addKey("rsa", map[string][]string{
		"priority": {"-1"}, "privateKey": encode("PRIVATE KEY", private), "certificate": encode("CERTIFICATE", certificate),
	})}

	hash := sha256.Sum256(public) // Keycloak computes the key id this way
	s.keyID = base64.RawURLEncoding.EncodeToString(hash[:])
	require.Contains(t, r.publishedKeys(t), s.keyID)

	return s
}

// publishedKeys returns the ids of the keys in the realm's key set.
func (r *realm) publishedKeys(t *testing.T) []string {
	t.Helper()

	request, err := http.NewRequest(http.MethodGet, r.endpoint("certs"), nil)
	require.NoError(t, err)

	var set struct{ Keys []struct{ Kid string } }
	r.ask(request, http.StatusOK).json(t, &set)

	var ids []string
	for _, key := range set.Keys {
		ids = append(ids, key.Kid)
	}

	return ids
}

// claims returns the claims of a valid access token of a user. The same name always has the same subject.
func (s *signer) claims(username string) map[string]any {
	now := time.Now()

	return map[string]any{
		"iss": s.realm.issuer(), "aud": "quern", "sub": uuid.NewSHA1(uuid.NameSpaceOID, []byte(username)).String(),
		"preferred_username": username, "typ": "Bearer", "azp": client,
		"iat": now.Unix(), "exp": now.Add(tokenLifespan).Unix(),
	}
}

// token returns a valid access token of a user.
func (s *signer) token(username string) string { return s.sign(s.claims(username)) }

// sign returns a token with any claims.
func (s *signer) sign(claims map[string]any) string {
	s.realm.t.Helper()

	return encodeToken(s.realm.t, map[string]any{"alg": "RS256", "typ": "JWT", "kid": s.keyID}, claims, func(text []byte) []byte {
		hash := sha256.Sum256(text)
		signature, err := rsa.SignPKCS1v15(nil, s.key, crypto.SHA256, hash[:])
		require.NoError(s.realm.t, err)

		return signature
	})
}

// encodeToken encodes a JWT itself, because libraries refuse to create invalid ones.
func encodeToken(t *testing.T, header, claims map[string]any, sign func(text []byte) []byte) string {
	t.Helper()

	encode := base64.RawURLEncoding.EncodeToString
	head, err := json.Marshal(header)
	require.NoError(t, err)
	body, err := json.Marshal(claims)
	require.NoError(t, err)

	text := encode(head) + "." + encode(body)

	return text + "." + encode(sign([]byte(text)))
}
