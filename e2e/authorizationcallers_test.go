package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// newSharer creates the grants of a column of the sharing table on a namespace, and returns the caller's token.
func newSharer(t *testing.T, s *service, key *signer, namespace, column string) (bearer string) {
	t.Helper()

	var (
		owner      = key.token("owner")
		whole, one = "namespaces/self/" + namespace, "datasets/self/" + namespace + "/orders"
		thisOne    = target("owner", namespace, "orders")
		user       = "sharer-" + column[:1] + uuid.NewString()[:8]
		group      = user + "-group"
	)

	member := key.claims(user)
	member["groups"] = []string{"another", group}
	bearer = key.sign(member)
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/user/me", bearer, "").status)

	grant := func(path, grantee, role string) { share(t, s, owner, path, grantee, role) }
	revoke := func(path, grantee string) { unshare(t, s, owner, path, grantee) }

	switch column {
	case "viewer@d", "editor@d":
		grant(one, user, column[:6])
	case "viewer@g", "editor@g":
		grant(whole, "@"+group, column[:6])
	case "editor@gd":
		grant(one, "@"+group, "editor")
	case "both":
		grant(whole, user, "viewer")
		grant(one, user, "editor")
	case "both@g":
		grant(one, user, "viewer")
		grant(whole, "@"+group, "editor")
	case "former":
		for _, path := range []string{whole, one} {
			for _, grantee := range []string{user, "@" + group} {
				grant(path, grantee, "editor")
				revoke(path, grantee)
			}
		}
	case "half":
		grant(whole, user, "editor")
		grant(one, user, "viewer")
		revoke(whole, user)
	case "token":
		grant(whole, user, "editor")

		_, bearer = newToken(t, s, bearer, "viewer")
	case "viewer@o", "editor@o":
		_, bearer = newToken(t, s, owner, column[:6])
	case "in-n":
		bearer = restrictedToken(t, s, owner, target("self", namespace, ""))
	case "in-d":
		bearer = restrictedToken(t, s, owner, thisOne)
	case "in-x":
		bearer = restrictedToken(t, s, owner, target("self", makeDataset(t, s, owner), ""))
	case "guest-d":
		grant(whole, user, "editor")

		bearer = restrictedToken(t, s, bearer, thisOne)
	default:
		require.Fail(t, "no such column", column)
	}

	return bearer
}

// newCallers creates the token of each column.
func newCallers(t *testing.T, s *service, key *signer) map[string]string {
	t.Helper()

	owner := key.token("owner")
	changed := func(claim string, value any) string {
		claims := key.claims("owner")
		claims[claim] = value

		return key.sign(claims)
	}
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).Unix() }

	disabled := key.token("disabled")
	require.Equal(t, http.StatusOK, call(t, http.MethodGet, s.url+"/user/me", disabled, "").status)
	s.quernd("user", "disable", "disabled")

	_, viewer := newToken(t, s, owner, "viewer")
	_, editor := newToken(t, s, owner, "editor")
	_, all := newToken(t, s, owner, "owner")

	revokedID, revoked := newToken(t, s, owner, "owner")
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/user/tokens/"+revokedID, owner, "").status)

	lapsedID, lapsed := newToken(t, s, owner, "owner")
	s.exec(`UPDATE tokens SET expires_at = now() - interval '1 second' WHERE id = $1`, lapsedID)

	restricted := restrictedToken(t, s, owner, target("self", makeDataset(t, s, owner), ""))

	return map[string]string{
		"no": "", "garbage": "garbage",
		"expired":  changed("exp", ago(10*time.Minute)),
		"early":    changed("nbf", ago(-time.Hour)),
		"audience": changed("aud", "another"),
		"issuer":   changed("iss", s.realm.issuer()+"-too"),
		"none":     unsigned(t, key),
		"hs256":    signedWithPublicKey(t, key),
		"id":       changed("typ", "ID"),
		"disabled": disabled, "revoked": revoked, "lapsed": lapsed, "restricted": restricted,
		"stranger": key.token("stranger"), "viewer": viewer, "editor": editor, "owner": all, "operator": key.operator("operator"),
	}
}

func unsigned(t *testing.T, key *signer) string {
	t.Helper()

	return encodeToken(t, map[string]any{"alg": "none", "typ": "JWT"}, key.claims("owner"), func([]byte) []byte { return nil })
}

func signedWithPublicKey(t *testing.T, key *signer) string {
	t.Helper()

	public, err := x509.MarshalPKIXPublicKey(key.key.Public())
	require.NoError(t, err)

	secret := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})

	return encodeToken(t, map[string]any{"alg": "HS256", "typ": "JWT", "kid": key.keyID}, key.claims("owner"), func(text []byte) []byte {
		mac := hmac.New(sha256.New, secret)
		mac.Write(text)

		return mac.Sum(nil)
	})
}

// newToken creates an API token of the bearer.
func newToken(t *testing.T, s *service, bearer, role string) (id, value string) {
	t.Helper()

	answer := call(t, http.MethodPost, s.url+"/user/tokens", bearer, `{"name": "made by a test", "role": "`+role+`"}`)
	require.Equal(t, http.StatusCreated, answer.status, answer.body)

	var made struct{ ID, Token string }
	answer.json(t, &made)

	return made.ID, made.Token
}
