package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// authorizationTable says for every operation and every kind of caller which status the caller gets. The request is
// always the same and valid, and it is about something that the account "owner" has.
//
//	no          token at all
//	garbage     a token that is none
//	expired     … early: valid from 10 minutes ahead … audience, issuer: of another one
//	none        alg: none … hs256: signed with the issuer's public key as secret … id: an ID token with our audience
//	disabled    a user whom the operator disabled
//	revoked     … lapsed, restricted: API tokens of the owner; the last one can reach one namespace
//	stranger    a signed-in user to whom nothing was shared
//	viewer      … editor, owner: users with that role on the thing; where an operation is about the caller's own
//	            account, API tokens of the owner with that role
func authorizationTable() (columns string, rows []authorizationRow) {
	columns = "        no  garbage expired early audience issuer none hs256 id  disabled revoked lapsed restricted stranger viewer editor owner"

	return columns, []authorizationRow{
		{operation: "GET /docs", statuses: "" +
			"200 200     200     200   200      200    200  200   200 200      200     200    200        200      200    200    200"},
		{operation: "GET /openapi.json", statuses: "" +
			"200 200     200     200   200      200    200  200   200 200      200     200    200        200      200    200    200"},
		{operation: "GET /user/me", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    200        200      200    200    200"},
		{operation: "GET /user/tokens", statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        200      200    200    200"},
		{operation: "POST /user/token", body: `{"name": "x"}`, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        200      200    200    200"},
		{operation: "DELETE /user/token/{id}", thing: editorToken, statuses: "" +
			"401 401     401     401   401      401    401  401   401 401      401     401    403        404      403    204    204"},
	}
}

type authorizationRow struct {
	operation string // as the contract has it
	body      string
	thing     func(t *testing.T, s *service, owner string) (path string) // makes what the path names, anew for each request
	statuses  string
}

// editorToken makes a token of the owner, with the role editor, to be named by a path.
func editorToken(t *testing.T, s *service, owner string) string {
	t.Helper()

	id, _ := newToken(t, s, owner, "editor")

	return "/user/token/" + id
}

func TestAuthorizationTable(t *testing.T) { //nolint:tparallel // the callers' tokens would expire in the queue
	t.Parallel()

	s := start(t)
	key := s.newKey()
	owner := key.token("owner")
	callers := newCallers(t, s, key)

	header, rows := authorizationTable()
	columns := strings.Fields(header)
	require.Len(t, callers, len(columns))

	missing := map[string]bool{}
	for _, operation := range operations() {
		missing[operation.String()] = true
	}

	refusal := call(t, http.MethodGet, s.url+"/user/me", "", "").body

	for _, row := range rows {
		require.True(t, missing[row.operation], "%s stands twice, or is not an operation", row.operation)
		delete(missing, row.operation)

		statuses := strings.Fields(row.statuses)
		require.Len(t, statuses, len(columns), row.operation)

		t.Run(row.operation, func(t *testing.T) {
			method, path, _ := strings.Cut(row.operation, " ")

			for i, column := range columns {
				require.Contains(t, callers, column)

				if row.thing != nil {
					path = row.thing(t, s, owner)
				}

				answer := call(t, method, s.url+path, callers[column], row.body)
				require.Equal(t, statuses[i], strconv.Itoa(answer.status), "%s: %s", column, answer.body)

				if answer.status == http.StatusUnauthorized {
					require.Equal(t, refusal, answer.body, "%s: the answer tells why", column)
					require.True(t, strings.HasPrefix(answer.header.Get("WWW-Authenticate"), `Bearer realm="quern"`), column)
				}
			}
		})
	}

	require.Empty(t, missing, "operations without a row")
}

// newCallers makes the token of each column.
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
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/user/token/"+revokedID, owner, "").status)

	lapsedID, lapsed := newToken(t, s, owner, "owner")
	s.exec(`UPDATE tokens SET expires_at = now() - interval '1 second' WHERE id = $1`, lapsedID)

	restrictedID, restricted := newToken(t, s, owner, "owner")
	s.exec(`UPDATE tokens SET restricted = true WHERE id = $1`, restrictedID)
	s.exec(`INSERT INTO token_targets (account_id, token_id, target_kind, target_account_id, target_id)
		SELECT account_id, id, 'namespace', account_id, $2 FROM tokens WHERE id = $1`, restrictedID, uuid.New())

	return map[string]string{
		"no": "", "garbage": "garbage",
		"expired":  changed("exp", ago(10*time.Minute)),
		"early":    changed("nbf", ago(-10*time.Minute)),
		"audience": changed("aud", "another"),
		"issuer":   changed("iss", s.realm.issuer()+"-too"),
		"none":     unsigned(t, key),
		"hs256":    signedWithPublicKey(t, key),
		"id":       changed("typ", "ID"),
		"disabled": disabled, "revoked": revoked, "lapsed": lapsed, "restricted": restricted,
		"stranger": key.token("stranger"), "viewer": viewer, "editor": editor, "owner": all,
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

// newToken makes an API token of the bearer.
func newToken(t *testing.T, s *service, bearer, role string) (id, value string) {
	t.Helper()

	answer := call(t, http.MethodPost, s.url+"/user/token", bearer, `{"name": "made by a test", "role": "`+role+`"}`)
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	var made struct{ ID, Token string }
	answer.json(t, &made)

	return made.ID, made.Token
}
