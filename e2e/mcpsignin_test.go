package e2e

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

var metadataOf = regexp.MustCompile(`resource_metadata="([^"]+)"`)

// TestMCPSignIn signs in as a host does that knows only the address of the service: it finds the issuer by the challenge and the
// metadata, signs a person in with PKCE for this resource, and calls a tool.
func TestMCPSignIn(t *testing.T) {
	t.Parallel()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)

	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	resource := "http://" + address + "/api/v1/mcp"
	s := start(t, "QUERN_LISTEN_ADDR="+address, "QUERN_PUBLIC_URL=http://"+address, "QUERN_OIDC_AUDIENCE=quern,"+resource)

	challenge := call(t, http.MethodPost, resource, "", listTools)
	require.Equal(t, http.StatusUnauthorized, challenge.status)

	found := metadataOf.FindStringSubmatch(challenge.header.Get("WWW-Authenticate"))
	require.NotNil(t, found, challenge.header)
	require.Equal(t, "http://"+address+"/.well-known/oauth-protected-resource/api/v1/mcp", found[1])

	var about struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported"`
	}

	metadata := call(t, http.MethodGet, found[1], "", "", "Origin: https://inspector.example")
	require.Equal(t, "*", metadata.header.Get("Access-Control-Allow-Origin"))
	metadata.json(t, &about)
	require.Equal(t, resource, about.Resource)
	require.NotContains(t, about.Scopes, "offline_access")

	var issuer struct {
		Authorization string   `json:"authorization_endpoint"`
		Token         string   `json:"token_endpoint"`
		Challenges    []string `json:"code_challenge_methods_supported"`
	}

	call(t, http.MethodGet, about.Servers[0]+"/.well-known/openid-configuration", "", "").json(t, &issuer)
	require.Contains(t, issuer.Challenges, "S256")

	// The client of the host, registered as docs/mcp.md says: its tokens are only for this resource.
	host := "host-" + uuid.NewString()
	s.realm.administer(http.MethodPost, "/"+s.realm.name+"/clients", map[string]any{
		"clientId": host, "publicClient": true, "redirectUris": []string{redirectURI}, "attributes": map[string]string{"pkce.code.challenge.method": "S256"},
		"protocolMappers": []map[string]any{{
			"name": "resource", "protocol": "openid-connect", "protocolMapper": "oidc-audience-mapper",
			"config": map[string]string{"included.custom.audience": resource, "access.token.claim": "true"},
		}},
	})

	verifier := rand.Text() + rand.Text()
	hash := sha256.Sum256([]byte(verifier))
	back := s.realm.loginAs("ada", issuer.Authorization, url.Values{
		"client_id": {host}, "response_type": {"code"}, "code_challenge_method": {"S256"}, "resource": {resource},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(hash[:])},
	})

	var got tokens
	s.realm.ask(newForm(t, issuer.Token, url.Values{
		"client_id": {host}, "grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "code_verifier": {verifier},
		"redirect_uri": {redirectURI}, "resource": {resource},
	}), http.StatusOK).json(t, &got)

	listed := useTool(t, s, got.Access, "list_datasets", `{}`)
	require.False(t, listed.IsError, listed.Content)

	// A service that is not configured for this resource refuses the token.
	other := start(t)
	refused := call(t, http.MethodPost, other.url+"/mcp", got.Access, listTools)
	require.Equal(t, http.StatusUnauthorized, refused.status)
	require.Contains(t, refused.header.Get("WWW-Authenticate"), `error="invalid_token"`)
}
