package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func catalogScenarios() []scenario {
	return slices.Concat(datasetScenarios(), shareScenarios(), deletionScenarios(), visibleScenarios(), []scenario{
		{name: "what happened is shown to the owner", steps: []step{
			{as: "amy", do: "GET /user/me", status: 200, want: account("amy", "amy")},
			{as: "amy", do: "POST /ingest/new/n/d", status: 201, want: datasetBody("amy/n/d", "", "{}")},
			{as: "amy", do: "POST /user/tokens", body: `{"name": "o", "role": "owner"}`, status: 201, want: created("o", "o", "owner", "<o-expires now+2160h>")},
			{as: "amy", do: "POST /user/tokens", body: `{"name": "e"}`, status: 201, want: created("e", "e", "editor", "<e-expires now+2160h>")},
			{as: "<o-token>", do: "POST /permissions/datasets/self/n/d/shares", header: []string{"X-Request-Id: the-share"}, body: shareBody("ali", "editor"), status: 200},
			{as: "ali", do: "PUT /data/amy/n/d/inferDefinition", body: `{"dataDescription": "By Ali"}`, status: 201, want: definitionBody("By Ali", "{}")},
			{as: "amy", do: "GET /audit?limit=2", status: 200, want: firstPage("next",
				auditBody("ali", "definition.put", `{"kind": "dataset", "id": "<d uuid>", "namespace": "n", "dataset": "d"}`, "revision 1"),
				`{"id": "<entry uuid>", "at": "<at now>", "username": "amy", "tokenId": "<o>", "action": "share.grant", "target": {"kind": "dataset", "id": "<d>", "namespace": "n", "dataset": "d"},
					"detail": "ali editor", "outcome": "done", "address": "127.0.0.1", "requestId": "<share text>"}`)},
			{as: "<o-token>", do: "GET /audit?limit=2&cursor=<next>", status: 200, want: firstPage("rest",
				auditBody("amy", "token.create", `{"kind": "token", "id": "<e>"}`, ""), auditBody("amy", "token.create", `{"kind": "token", "id": "<o>"}`, ""))},
			{as: "amy", do: "GET /audit?cursor=<rest>", status: 200, want: page(
				auditBody("amy", "dataset.create", `{"kind": "dataset", "id": "<d>", "namespace": "n", "dataset": "d"}`, ""),
				auditBody("amy", "namespace.create", `{"kind": "namespace", "id": "<n uuid>", "namespace": "n"}`, ""),
				auditBody("amy", "account.create", `{"kind": "account", "id": "<amy>"}`, ""))},
			{as: "ali", do: "GET /user/me", status: 200, want: account("ali", "ali")},
			{as: "ali", do: "GET /audit", status: 200, want: page(auditBody("ali", "account.create", `{"kind": "account", "id": "<ali>"}`, ""))},
			{as: "<e-token>", do: "GET /audit", status: 403, want: plainFault("FORBIDDEN", "This requires an unrestricted token with the role owner.")},
			{as: "amy", do: "GET /audit?cursor=nonsense", status: 422, want: invalid("cursor", "is not a cursor of this list; set it to the nextCursor of the page before, or leave it out for the first page")},
			{as: "amy", do: "GET /audit?namespace=N&dataset=D&reads=false", status: 200, want: page(
				auditBody("ali", "definition.put", `{"kind": "dataset", "id": "<d>", "namespace": "n", "dataset": "d"}`, "revision 1"),
				`{"id": "<entry uuid>", "at": "<at now>", "username": "amy", "tokenId": "<o>", "action": "share.grant", "target": {"kind": "dataset", "id": "<d>", "namespace": "n", "dataset": "d"},
					"detail": "ali editor", "outcome": "done", "address": "127.0.0.1", "requestId": "<share>"}`,
				auditBody("amy", "dataset.create", `{"kind": "dataset", "id": "<d>", "namespace": "n", "dataset": "d"}`, ""),
				auditBody("amy", "namespace.create", `{"kind": "namespace", "id": "<n>", "namespace": "n"}`, ""))},
			{as: "amy", do: "GET /audit?namespace=none", status: 200, want: page()},
			{as: "amy", do: "GET /audit?dataset=d", status: 422, want: invalid("dataset", "needs namespace; add the namespace of the dataset")},
			{as: "amy", do: "GET /audit?reads=false&cursor=<rest>", status: 422, want: invalid("cursor", "is not a cursor of this list; set it to the nextCursor of the page before, or leave it out for the first page")},
			{as: "amy", do: "GET /audit?limit=101", status: 422, want: invalid("limit", "must be at most 100")},
			{do: "quernd audit -n 2 AMY", want: "AT                    WHO  ACTION          TARGET  DETAIL      ADDRESS    REQUEST\n" +
				"<at now>  ali  definition.put  n/d     revision 1  127.0.0.1  <put text>\n" +
				"<at now>  amy  share.grant     n/d     ali editor  127.0.0.1  <share>\n"},
			{do: "quernd audit nobody-at-all", status: 1, want: `quernd: There is no user "nobody-at-all".`},
		}},
		{name: "repeats of what creates", steps: []step{
			{as: "ida", do: "POST /schema/self/namespaces", header: []string{"Idempotency-Key: n"}, body: `{"name": "n"}`, status: 201, want: namespaceBody("ida", "n", "schema", "owner")},
			{as: "ida", do: "POST /schema/self/namespaces", header: []string{"Idempotency-Key: n"}, body: `{ "name" : "n" }`, status: 201, want: namespaceBody("ida", "n", "schema", "owner")},
			{as: "ida", do: "POST /schema/self/namespaces", header: []string{"Idempotency-Key: n"}, body: `{"name": "m"}`, status: 422, want: invalid("Idempotency-Key", "was used with another request; use a new key")},
			{as: "ida", do: "POST /schema/self/namespaces", header: []string{"Idempotency-Key: n2"}, body: `{"name": "n"}`, status: 409, want: namespaceHere},
			{as: "ida", do: "POST /ingest/new/n/d", header: []string{"Idempotency-Key: n"}, body: `{"dataDescription": "One"}`, status: 201, want: datasetBody("ida/n/d", "One", "{}")},
			{as: "ida", do: "POST /ingest/new/n/d", header: []string{"Idempotency-Key: n"}, body: `{"dataDescription": "One"}`, status: 201, want: datasetBody("ida/n/d", "One", "{}")},
			{as: "ida", do: "POST /ingest/new/n/e", header: []string{"Idempotency-Key: n"}, body: `{"dataDescription": "One"}`, status: 422, want: invalid("Idempotency-Key", "was used with another request; use a new key")},
			{as: "ida", do: "POST /ingest/new/n/d", header: []string{"Idempotency-Key: n2"}, body: `{"dataDescription": "One"}`, status: 409, want: datasetHere},
			// A refused request does not use its key.
			{as: "ida", do: "POST /ingest/new/n/e", header: []string{"Idempotency-Key: n2"}, status: 201, want: datasetBody("ida/n/e", "", "{}")},
			{as: "ida", do: "POST /permissions/datasets/self/n/d/shares", header: []string{"Idempotency-Key: s"}, body: shareBody("ike", "viewer"), status: 200},
			{as: "ida", do: "DELETE /permissions/datasets/self/n/d/shares", body: `{"username": "ike"}`, status: 200},
			{as: "ida", do: "POST /permissions/datasets/self/n/d/shares", header: []string{"Idempotency-Key: s"}, body: shareBody("ike", "viewer"), status: 200},
			{as: "ida", do: "GET /permissions/datasets/self/n/d/shares", status: 200, want: shares()},
			{as: "ida", do: "POST /permissions/datasets/self/n/d/shares", header: []string{"Idempotency-Key: s"}, body: shareBody("ike", "editor"), status: 422, want: invalid("Idempotency-Key", "was used with another request; use a new key")},
			{as: "ida", do: "POST /permissions/namespaces/self/n/shares", header: []string{"Idempotency-Key: s"}, body: shareBody("ike", "viewer"), status: 200},
			{as: "ida", do: "POST /permissions/namespaces/self/n/shares", header: []string{"Idempotency-Key: s"}, body: shareBody("ike", "viewer"), status: 200},
			{as: "ida", do: "GET /permissions/namespaces/self/n/shares", status: 200, want: shares(pendingBody("ike", "viewer"))},
			// The repeated request returns the created resource in its current state.
			{as: "ida", do: "PATCH /data/self/n/d", body: `{"name": "renamed"}`, status: 200, want: datasetBody("ida/n/renamed", "One", "{}")},
			{as: "ida", do: "POST /ingest/new/n/d", header: []string{"Idempotency-Key: n"}, body: `{"dataDescription": "One"}`, status: 201, want: datasetBody("ida/n/renamed", "One", "{}")},
			{as: "ida", do: "POST /user/tokens", header: []string{"Idempotency-Key: t"}, body: `{"name": "t", "accessRestrictedTo": [{"username": "self", "namespace": "n", "dataset": "renamed"}]}`, status: 201, want: restricted("t", "editor", target("ida", "n", "renamed"))},
			{as: "ida", do: "PATCH /data/self/n/renamed", body: `{"name": "again"}`, status: 200, want: datasetBody("ida/n/again", "One", "{}")},
			{as: "ida", do: "POST /user/tokens", header: []string{"Idempotency-Key: t"}, body: `{"name": "t", "accessRestrictedTo": [{"username": "self", "namespace": "n", "dataset": "renamed"}]}`, status: 201, want: restricted("t", "editor", target("ida", "n", "again"))},
		}},
	})
}

func TestCatalogScenarios(t *testing.T) {
	t.Parallel()

	shared := start(t)
	key := shared.newKey()
	playAll(t, shared, key, catalogScenarios())

	t.Run("groups as the issuer gives them", func(t *testing.T) {
		t.Parallel()

		owner, realm := key.token("grouper"), *shared.realm
		realm.t = t

		namespace := makeDataset(t, shared, owner)
		share(t, shared, owner, "namespaces/self/"+namespace, "@analysts", "viewer")

		address := shared.url + "/data/grouper/" + namespace + "/orders"
		require.Equal(t, http.StatusOK, call(t, http.MethodGet, address, realm.password("bob"), "").status)
		require.Equal(t, http.StatusNotFound, call(t, http.MethodGet, address, realm.password("ada"), "").status)
	})

	t.Run("pages of one give each exactly once", func(t *testing.T) {
		t.Parallel()
		checkPages(t, shared, key)
	})

	t.Run("what was used today", func(t *testing.T) {
		t.Parallel()

		user := key.token("user")
		require.Equal(t, http.StatusOK, call(t, http.MethodGet, shared.url+"/user/me", user, "").status)
		shared.exec(`INSERT INTO usage (account_id, day, kind, amount) SELECT account_id, (now() AT TIME ZONE 'UTC')::date, 'questions', 7 FROM directory_names WHERE username = 'user'`)
		shared.exec(`INSERT INTO usage (account_id, day, kind, amount) SELECT account_id, (now() AT TIME ZONE 'UTC')::date - 1, 'tokens', 3 FROM directory_names WHERE username = 'user'`)
		shared.quernd("limit", "set", "--user", "user", "questions", "5")
		shared.quernd("limit", "set", "--user", "user", "tokens", "9")

		today := time.Now().UTC().Truncate(24 * time.Hour)
		answer := call(t, http.MethodGet, shared.url+"/user/usage", user, "")
		require.JSONEq(t, fmt.Sprintf(`{"date": %q, "resetsAt": %[2]q, "items": [
			{"kind": "questions", "used": 7, "limit": 5, "left": 0, "resetsAt": %[2]q}, {"kind": "tokens", "used": 0, "limit": 9, "left": 9, "resetsAt": %[2]q}]}`,
			today.Format(time.DateOnly), today.AddDate(0, 0, 1).Format(time.RFC3339)), answer.body)

		other := call(t, http.MethodGet, shared.url+"/user/usage", key.token("unused"), "")
		require.JSONEq(t, fmt.Sprintf(`{"date": %q, "resetsAt": %q, "items": []}`, today.Format(time.DateOnly), today.AddDate(0, 0, 1).Format(time.RFC3339)), other.body)
	})

	t.Run("what is another's and what is not there differ in no byte", func(t *testing.T) {
		t.Parallel()

		victim := key.token("catalog-victim")
		namespace := makeDataset(t, shared, victim)
		elsewhere := makeDataset(t, shared, victim)
		reaches := restrictedToken(t, shared, victim, target("self", elsewhere, ""))

		for _, operation := range operations() {
			if !strings.Contains(operation.path, "{namespace}") || !strings.Contains(operation.path, "{username}") {
				continue
			}

			for who, bearer := range map[string]string{"stranger": key.token("catalog-stranger"), "restricted": reaches} {
				ask := func(username, namespace, dataset string) *answer {
					address := strings.NewReplacer("{username}", username, "{namespace}", namespace, "{datasetName}", dataset).Replace(operation.path)
					body := ""
					if operation.schema() != nil {
						body = encode(t, operation.body(t))
					}

					within := username + "/" + namespace

					return call(t, operation.method, shared.url+address, bearer, body).comparable(within+"/"+dataset, "<dataset>", within, "<namespace>", username, "<user>")
				}

				foreign := ask("catalog-victim", namespace, "orders")
				require.Contains(t, []int{http.StatusForbidden, http.StatusNotFound}, foreign.status, "%s as %s", operation, who)
				require.Equal(t, ask("catalog-victim", namespace, "absent"), foreign, "%s as %s", operation, who)
				require.Equal(t, ask("catalog-victim", "absent", "orders"), foreign, "%s as %s", operation, who)

				if who == "stranger" {
					require.Equal(t, ask("no-such-user", namespace, "orders"), foreign, "%s as %s", operation, who)
				}
			}
		}
	})
}

// checkPages shares resources in every way, some in two ways, and reads the lists with pages of several sizes.
func checkPages(t *testing.T, s *service, key *signer) {
	t.Helper()

	claims := key.claims("reader")
	claims["groups"] = []string{"readers", "more-readers"}
	reader := key.sign(claims)

	var want []string

	for _, owner := range []string{"pages-one", "pages-two"} {
		bearer := key.token(owner)

		// Grants on a whole namespace, on single datasets and on both; to a username and to two groups.
		for i, shares := range [][]string{
			{"namespaces reader"},
			{"namespaces @readers", "datasets reader"},
			{"namespaces reader", "namespaces @readers", "namespaces @more-readers"},
			{"datasets @readers", "datasets @more-readers", "datasets reader"},
			{"datasets reader"},
			{},
		} {
			namespace := fmt.Sprintf("n%d", i)
			for _, dataset := range []string{"a", "b", "c"} {
				made := call(t, http.MethodPost, s.url+"/ingest/new/"+namespace+"/"+dataset, bearer, "")
				require.Equal(t, http.StatusCreated, made.status, made.body)
			}

			for _, how := range shares {
				kind, grantee, _ := strings.Cut(how, " ")

				path := kind + "/self/" + namespace
				if kind == "datasets" {
					path += "/b"
				}

				share(t, s, bearer, path, grantee, "viewer")
			}

			switch {
			case len(shares) == 0:
			case slices.ContainsFunc(shares, func(how string) bool { return strings.HasPrefix(how, "namespaces") }):
				want = append(want, owner+"/"+namespace+"/a", owner+"/"+namespace+"/b", owner+"/"+namespace+"/c")
			default:
				want = append(want, owner+"/"+namespace+"/b")
			}
		}
	}

	for _, dataset := range []string{"x", "y"} {
		require.Equal(t, http.StatusCreated, call(t, http.MethodPost, s.url+"/ingest/new/mine/"+dataset, reader, "").status)
	}

	// The reader has signed in only now, so all grants above are by name. One more grant is by account.
	share(t, s, key.token("pages-two"), "datasets/self/n5/c", "reader", "viewer")
	share(t, s, reader, "namespaces/self/mine", "@readers", "viewer")
	want = append(want, "pages-two/n5/c", "reader/mine/x", "reader/mine/y")

	for _, limit := range []int{1, 2, 3, 7, 100} {
		list := collect(t, s, reader, "/schema/datasets/all", limit)
		require.ElementsMatch(t, want, list, "limit %d", limit)
		require.Equal(t, []string{"reader/mine/x", "reader/mine/y"}, list[:2], "limit %d: one's own first", limit)

		namespaces := collect(t, s, reader, "/schema/namespaces/all", limit)
		require.Equal(t, "reader//mine", namespaces[0], "limit %d: one's own first", limit)
		require.ElementsMatch(t, []string{
			"reader//mine", "pages-one//n0", "pages-one//n1", "pages-one//n2", "pages-one//n3", "pages-one//n4",
			"pages-two//n0", "pages-two//n1", "pages-two//n2", "pages-two//n3", "pages-two//n4", "pages-two//n5",
		}, namespaces, "limit %d", limit)

		for _, owner := range []string{"pages-one", "pages-two"} {
			visible := 5
			if owner == "pages-two" {
				visible = 6
			}

			require.Len(t, collect(t, s, reader, "/schema/"+owner+"/namespaces", limit), visible, "limit %d", limit)
			require.Equal(t, []string{owner + "/n1/a", owner + "/n1/b", owner + "/n1/c"}, collect(t, s, reader, "/schema/"+owner+"/n1/datasets", limit), "limit %d", limit)
			require.Equal(t, []string{owner + "/n3/b"}, collect(t, s, reader, "/schema/"+owner+"/n3/datasets", limit), "limit %d", limit)
		}
	}
}

// collect reads a list page by page, and returns the path of each entry.
func collect(t *testing.T, s *service, bearer, path string, limit int) (list []string) {
	t.Helper()

	for cursor := ""; ; {
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		if cursor != "" {
			query.Set("cursor", cursor)
		}

		answer := call(t, http.MethodGet, s.url+path+"?"+query.Encode(), bearer, "")
		require.Equal(t, http.StatusOK, answer.status, answer.body)

		var page struct {
			Data       []struct{ Username, Namespace, Name string }
			NextCursor string
		}
		answer.json(t, &page)
		require.LessOrEqual(t, len(page.Data), limit)

		for _, item := range page.Data {
			list = append(list, item.Username+"/"+item.Namespace+"/"+item.Name)
		}

		if page.NextCursor == "" {
			return list
		}

		require.Len(t, page.Data, limit, "a page that is not the last is full")
		cursor = page.NextCursor
	}
}

// makeDataset creates a namespace of the bearer with the dataset orders, and returns the name of the namespace.
func makeDataset(t *testing.T, s *service, bearer string) (namespace string) {
	t.Helper()

	namespace = "n-" + uuid.NewString()
	answer := call(t, http.MethodPost, s.url+"/ingest/new/"+namespace+"/orders", bearer, "")
	require.Equal(t, http.StatusCreated, answer.status, answer.body)

	return namespace
}

// share creates a grant. path is namespaces/OWNER/NAMESPACE or datasets/OWNER/NAMESPACE/DATASET.
func share(t *testing.T, s *service, bearer, path, grantee, role string) {
	t.Helper()

	answer := call(t, http.MethodPost, s.url+"/permissions/"+path+"/shares", bearer, shareBody(grantee, role))
	require.Equal(t, http.StatusOK, answer.status, answer.body)
}

func unshare(t *testing.T, s *service, bearer, path, grantee string) {
	t.Helper()

	answer := call(t, http.MethodDelete, s.url+"/permissions/"+path+"/shares", bearer, `{"username": "`+grantee+`"}`)
	require.Equal(t, http.StatusOK, answer.status, answer.body)
}

// restrictedToken creates an API token of the bearer that is limited to one target.
func restrictedToken(t *testing.T, s *service, bearer, target string) string {
	t.Helper()

	return value(t, call(t, http.MethodPost, s.url+"/user/tokens", bearer, `{"name": "made by a test", "accessRestrictedTo": [`+target+`]}`))
}

// TestTwoReplicas checks that a change that was made on one replica is effective on the other with the next request.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()

	one := start(t)
	two := another(t, one)
	key := one.newKey()

	// API tokens outlive the loop.
	owner := value(t, call(t, http.MethodPost, one.url+"/user/tokens", key.token("owner"), `{"name": "owner", "role": "owner"}`))
	guest := value(t, call(t, http.MethodPost, two.url+"/user/tokens", key.token("guest"), `{"name": "guest", "role": "owner"}`))

	for i := range 50 {
		here, there := one, two
		if i%2 == 1 {
			here, there = two, one
		}

		sees := func(status int, path string) {
			t.Helper()

			answer := call(t, http.MethodGet, there.url+path, guest, "")
			require.Equal(t, status, answer.status, "round %d: %s: %s", i, path, answer.body)
		}
		change := func(status int, method, path, body string) {
			t.Helper()

			answer := call(t, method, here.url+path, owner, body)
			require.Equal(t, status, answer.status, "round %d: %s %s: %s", i, method, path, answer.body)
		}

		namespace := makeDataset(t, here, owner)
		at := "/data/owner/" + namespace
		sees(http.StatusNotFound, at+"/orders")

		share(t, here, owner, "namespaces/self/"+namespace, "guest", "viewer")
		sees(http.StatusOK, at+"/orders")
		unshare(t, here, owner, "namespaces/self/"+namespace, "guest")
		sees(http.StatusNotFound, at+"/orders")
		share(t, here, owner, "datasets/self/"+namespace+"/orders", "guest", "viewer")
		sees(http.StatusOK, at+"/orders")

		change(http.StatusOK, http.MethodPatch, "/data/self/"+namespace+"/orders", `{"name": "renamed"}`)
		sees(http.StatusNotFound, at+"/orders")
		sees(http.StatusOK, at+"/renamed")

		one.quernd("user", "disable", "guest")
		sees(http.StatusUnauthorized, at+"/renamed")
		one.quernd("user", "enable", "guest")
		sees(http.StatusOK, at+"/renamed")

		change(http.StatusNoContent, http.MethodDelete, "/data/self/"+namespace+"/renamed", "")
		sees(http.StatusNotFound, at+"/renamed")
		sees(http.StatusNotFound, "/schema/owner/"+namespace+"/datasets")

		var list struct{ Data []json.RawMessage }
		call(t, http.MethodGet, there.url+"/schema/datasets/all", guest, "").json(t, &list)
		require.Empty(t, list.Data)
	}
}
