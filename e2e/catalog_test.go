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

// namespaceBody is a namespace as one with that role sees it; without a role only single datasets in it are shared.
func namespaceBody(owner, name, exposure, role string) string {
	if role != "" {
		role = `, "role": "` + role + `"`
	}

	return `{"username": "` + owner + `", "name": "` + name + `", "exposure": "` + exposure + `", "createdAt": "<at now>"` + role + `}`
}

// datasetBody is the description of a dataset without rows. The path is OWNER/NAMESPACE/NAME.
func datasetBody(path, description, schema string) string {
	part := strings.Split(path, "/")

	return `{"dataset": {"owner": "` + part[0] + `", "namespace": "` + part[1] + `", "name": "` + part[2] + `"}, "metadata": {
		"columnNames": [], "columns": [], "rowCount": 0, "engine": "duckdb", "dataDescription": "` + description + `", "schemaDefinition": ` + schema + `}}`
}

// itemBody is a dataset in a list.
func itemBody(path, role, exposure, description string) string {
	part := strings.Split(path, "/")

	return `{"username": "` + part[0] + `", "namespace": "` + part[1] + `", "name": "` + part[2] + `", "role": "` + role + `", "exposure": "` + exposure + `",
		"dataDescription": "` + description + `", "rowCount": 0, "createdAt": "<at now>", "updatedAt": "<at now>"}`
}

// plainItem is a dataset in a list of which nobody has said anything.
func plainItem(path, role string) string { return itemBody(path, role, "schema", "") }

func page(items ...string) string { return `{"data": [` + strings.Join(items, ", ") + `]}` }

// firstPage binds next to the cursor of the page after it.
func firstPage(next string, items ...string) string {
	return `{"data": [` + strings.Join(items, ", ") + `], "nextCursor": "<` + next + ` text>"}`
}

func definitionBody(description, schema string) string {
	return `{"dataDescription": "` + description + `", "schemaDefinition": ` + schema + `}`
}

func shareBody(username, role string) string {
	return `{"username": "` + username + `", "role": "` + role + `"}`
}

func pendingBody(username, role string) string {
	return `{"username": "` + username + `", "role": "` + role + `", "pending": true}`
}

func shares(items ...string) string { return "[" + strings.Join(items, ", ") + "]" }

func plainFault(code, message string) string {
	return `{"error_code": "` + code + `", "message": "` + message + `", "error_message": ""}`
}

func lacksRole(need, have string) string {
	return plainFault("FORBIDDEN", "This needs the role "+need+"; you have "+have+".")
}

// auditBody is an entry about something that was done by a request without an API token.
func auditBody(username, action, target, detail string) string {
	return `{"id": "<entry uuid>", "at": "<at now>", "username": "` + username + `", "action": "` + action + `", "target": ` + target + `, "detail": "` + detail + `",
		"outcome": "done", "address": "127.0.0.1", "requestId": "<request text>"}`
}

const (
	ownerOnly     = `{"error_code": "FORBIDDEN", "message": "Only the owner may do this.", "error_message": ""}`
	changedSince  = `{"error_code": "PRECONDITION_FAILED", "message": "The definition has changed. Read it again, then repeat the change.", "error_message": ""}`
	namespaceHere = `{"error_code": "CONFLICT", "message": "A namespace of this name exists.", "error_message": ""}`
	datasetHere   = `{"error_code": "CONFLICT", "message": "A dataset of this name exists.", "error_message": ""}`
	badName       = "must match ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
	badPathName   = "must have 1 to 128 letters, digits, dots, underscores or hyphens, and begin with a letter or digit"
	badExposure   = "must be one of: schema, values, rows"
	badShareRole  = "must be one of: viewer, editor"
	oneself       = "is yourself: what is yours needs no grant"
	nobodysName   = "is not a username that anybody can have"
	unseenTarget  = "names nothing that you can see"
)

func catalogScenarios() []scenario {
	longName, tooLong := strings.Repeat("n", 128), strings.Repeat("n", 129)

	return []scenario{
		{name: "a namespace from its making to its end", steps: []step{
			{as: "nora", do: "GET /schema/self/namespaces", status: 200, want: page()},
			{as: "nora", do: "POST /schema/self/namespaces", body: `{"name": "Sales"}`, status: 201, want: namespaceBody("nora", "Sales", "schema", "owner")},
			{as: "nora", do: "POST /schema/NORA/namespaces", body: `{"name": "open", "exposure": "rows"}`, status: 201, want: namespaceBody("nora", "open", "rows", "owner")},
			{as: "nora", do: "POST /schema/nora/namespaces", body: `{"name": "` + longName + `", "exposure": null}`, status: 201, want: namespaceBody("nora", longName, "schema", "owner")},
			{as: "nora", do: "POST /schema/self/namespaces", body: `{"name": "sALES"}`, status: 409, want: namespaceHere},
			{as: "nora", do: "POST /schema/self/namespaces", body: `{"name": "` + tooLong + `"}`, status: 422, want: invalid("name", badName)},
			{as: "nora", do: "POST /schema/self/namespaces", body: `{"name": "-sales"}`, status: 422, want: invalid("name", badName)},
			{as: "nora", do: "POST /schema/self/namespaces", body: `{"name": "två"}`, status: 422, want: invalid("name", badName)},
			{as: "nora", do: "POST /schema/self/namespaces", body: `{"name": "x", "exposure": "all"}`, status: 422, want: invalid("exposure", badExposure)},
			{as: "nora", do: "POST /schema/nick/namespaces", body: `{"name": "x"}`, status: 403, want: ownerOnly},
			{as: "nora", do: "GET /schema/self/namespaces", status: 200, want: page(
				namespaceBody("nora", "Sales", "schema", "owner"), namespaceBody("nora", "open", "rows", "owner"), namespaceBody("nora", longName, "schema", "owner"))},
			{as: "nora", do: "GET /schema/self/namespaces?limit=1", status: 200, want: firstPage("two", namespaceBody("nora", "Sales", "schema", "owner"))},
			{as: "nora", do: "GET /schema/self/namespaces?limit=1&cursor=<two>", status: 200, want: firstPage("three", namespaceBody("nora", "open", "rows", "owner"))},
			{as: "nora", do: "GET /schema/self/namespaces?limit=1&cursor=<three>", status: 200, want: page(namespaceBody("nora", longName, "schema", "owner"))},
			{as: "nora", do: "GET /schema/self/namespaces?cursor=nonsense", status: 422, want: invalid("cursor", "is not one that a page before gave")},

			{as: "nora", do: "PATCH /schema/self/namespaces/SALES", body: `{"exposure": "values"}`, status: 200, want: namespaceBody("nora", "Sales", "values", "owner")},
			{as: "nora", do: "PATCH /schema/self/namespaces/sales", body: `{"exposure": "everything"}`, status: 422, want: invalid("exposure", badExposure)},
			{as: "nora", do: "PATCH /schema/self/namespaces/absent", body: `{"exposure": "values"}`, status: 404, want: absent},
			{as: "nora", do: "PATCH /schema/self/namespaces/-sales", body: `{"exposure": "values"}`, status: 404, want: absent},
			{as: "nora", do: "PATCH /schema/nick/namespaces/sales", body: `{"exposure": "values"}`, status: 403, want: ownerOnly},

			{as: "nora", do: "POST /ingest/new/sales/orders", status: 201, want: datasetBody("nora/Sales/orders", "", "{}")},
			{as: "nora", do: "DELETE /schema/self/namespaces/sales", status: 409, want: plainFault("CONFLICT", "The namespace is not empty. Delete its datasets first.")},
			{as: "nora", do: "DELETE /data/self/sales/orders", status: 204},
			{as: "nora", do: "GET /schema/self/sales/datasets", status: 200, want: page()},
			{as: "nora", do: "DELETE /schema/nick/namespaces/sales", status: 403, want: ownerOnly},
			{as: "nora", do: "DELETE /schema/self/namespaces/sales", status: 204},
			{as: "nora", do: "DELETE /schema/self/namespaces/sales", status: 404, want: absent},
			{as: "nora", do: "GET /schema/self/sales/datasets", status: 404, want: absent},
			{as: "nora", do: "POST /schema/self/namespaces", body: `{"name": "SALES"}`, status: 201, want: namespaceBody("nora", "SALES", "schema", "owner")},
			{as: "nora", do: "GET /schema/nobody-at-all/namespaces", status: 200, want: page()},
			{as: "nora", do: "GET /schema/-impossible/namespaces", status: 404, want: absent},
		}},
		{name: "a dataset from its making to its end", steps: []step{
			{as: "dan", do: "POST /ingest/new/Sales/Orders", status: 201, want: datasetBody("dan/Sales/Orders", "", "{}")},
			{as: "dan", do: "GET /schema/self/namespaces", status: 200, want: page(namespaceBody("dan", "Sales", "schema", "owner"))},
			{
				as: "dan", do: "POST /ingest/new/sales/returns", body: `{"dataDescription": "What came back.", "schemaDefinition": {"order": "Number of the order"}}`, status: 201,
				want: datasetBody("dan/Sales/returns", "What came back.", `{"order": "Number of the order"}`),
			},
			{as: "dan", do: "POST /ingest/new/sales/empty", body: `{"dataDescription": null, "schemaDefinition": {}}`, status: 201, want: datasetBody("dan/Sales/empty", "", "{}")},
			{as: "dan", do: "POST /ingest/new/SALES/orders", status: 409, want: datasetHere},
			{as: "dan", do: "POST /ingest/new/-sales/orders", status: 422, want: invalid("namespace", badPathName)},
			{as: "dan", do: "POST /ingest/new/sales/" + tooLong, status: 422, want: invalid("datasetName", badPathName)},
			{as: "dan", do: "POST /ingest/new/sales/a%20b", body: "{}", status: 422, want: invalid("datasetName", badPathName)},
			{as: "dan", do: "POST /ingest/new/sales/" + longName, body: "{}", status: 201, want: datasetBody("dan/Sales/"+longName, "", "{}")},
			{as: "dan", do: "DELETE /data/self/sales/" + longName, status: 204},

			{as: "dan", do: "GET /data/self/sales/ORDERS", status: 200, want: datasetBody("dan/Sales/Orders", "", "{}")},
			{as: "dan", do: "GET /data/Dan/SALES/returns", status: 200, want: datasetBody("dan/Sales/returns", "What came back.", `{"order": "Number of the order"}`)},
			{as: "dan", do: "GET /data/self/sales/absent", status: 404, want: absent},
			{as: "dan", do: "GET /data/self/absent/orders", status: 404, want: absent},
			{as: "dan", do: "GET /data/self/sales/-orders", status: 404, want: absent},
			{as: "dan", do: "GET /data/self/sales/" + tooLong, status: 404, want: absent},
			{as: "dan", do: "GET /data/self/a%20b/orders", status: 404, want: absent},
			{as: "dan", do: "GET /data/a%20b/sales/orders", status: 404, want: absent},
			{as: "dan", do: "GET /schema/self/sales/datasets", status: 200, want: page(
				plainItem("dan/Sales/Orders", "owner"), itemBody("dan/Sales/returns", "owner", "schema", "What came back."), plainItem("dan/Sales/empty", "owner"))},
			{as: "dan", do: "GET /schema/self/sales/datasets?limit=2", status: 200, want: firstPage("rest",
				plainItem("dan/Sales/Orders", "owner"), itemBody("dan/Sales/returns", "owner", "schema", "What came back."))},
			{as: "dan", do: "GET /schema/self/sales/datasets?limit=2&cursor=<rest>", status: 200, want: page(plainItem("dan/Sales/empty", "owner"))},

			{as: "dan", do: "PATCH /data/self/sales/orders", body: `{"name": "ORDERS"}`, status: 200, want: datasetBody("dan/Sales/ORDERS", "", "{}")},
			{as: "dan", do: "PATCH /data/self/sales/orders", body: `{"name": "Returns"}`, status: 409, want: datasetHere},
			{as: "dan", do: "PATCH /data/self/sales/orders", body: `{"name": "a b"}`, status: 422, want: invalid("name", badName)},
			{as: "dan", do: "PATCH /data/self/sales/orders", body: `{"exposure": "some"}`, status: 422, want: invalid("exposure", badExposure)},
			{as: "dan", do: "PATCH /data/self/sales/orders", body: `{}`, status: 422, want: invalid("body", "must have a name or an exposure")},
			{as: "dan", do: "PATCH /data/self/sales/orders", body: `{"name": null, "exposure": null}`, status: 422, want: invalid("body", "must have a name or an exposure")},
			{as: "dan", do: "PATCH /data/self/sales/orders", body: `{"name": "bills", "exposure": "rows"}`, status: 200, want: datasetBody("dan/Sales/bills", "", "{}")},
			{as: "dan", do: "GET /data/self/sales/orders", status: 404, want: absent},
			{as: "dan", do: "PATCH /data/self/sales/orders", body: `{"name": "x"}`, status: 404, want: absent},

			// A dataset without an exposure of its own has that of its namespace.
			{as: "dan", do: "PATCH /schema/self/namespaces/sales", body: `{"exposure": "values"}`, status: 200, want: namespaceBody("dan", "Sales", "values", "owner")},
			{as: "dan", do: "GET /schema/self/sales/datasets", status: 200, want: page(
				itemBody("dan/Sales/bills", "owner", "rows", ""), itemBody("dan/Sales/returns", "owner", "values", "What came back."), itemBody("dan/Sales/empty", "owner", "values", ""))},

			{as: "dan", do: "POST /data/self/sales/returns/clear", status: 200, want: datasetBody("dan/Sales/returns", "What came back.", `{"order": "Number of the order"}`)},
			{as: "dan", do: "POST /data/self/sales/orders/clear", status: 404, want: absent},
			{as: "dan", do: "DELETE /data/self/sales/orders", status: 404, want: absent},
			{as: "dan", do: "DELETE /data/self/sales/bills", status: 204},
			{as: "dan", do: "DELETE /data/self/sales/bills", status: 404, want: absent},
			{as: "dan", do: "DELETE /data/self/sales/returns", status: 204},
			{as: "dan", do: "DELETE /data/self/sales/empty", status: 204},
			{as: "dan", do: "GET /schema/self/namespaces", status: 200, want: page(namespaceBody("dan", "Sales", "values", "owner"))},
		}},
		{name: "a definition, its revisions and its conditions", steps: []step{
			{as: "dee", do: "POST /ingest/new/n/d", status: 201, want: datasetBody("dee/n/d", "", "{}")},
			{as: "dee", do: "GET /data/self/n/d/inferDefinition", status: 200, want: definitionBody("", "{}"), shows: []string{`ETag: "0"`}},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", body: `{"dataDescription": "One", "schemaDefinition": {"a": "A", "b": "B"}}`, status: 201, want: definitionBody("One", `{"a": "A", "b": "B"}`), shows: []string{`ETag: "1"`}},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", body: `{"dataDescription": "Two"}`, status: 201, want: definitionBody("Two", `{"a": "A", "b": "B"}`), shows: []string{`ETag: "2"`}},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", body: `{"dataDescription": null, "schemaDefinition": {"c": ""}}`, status: 201, want: definitionBody("Two", `{"c": ""}`), shows: []string{`ETag: "3"`}},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", body: `{"schemaDefinition": {}}`, status: 201, want: definitionBody("Two", `{}`), shows: []string{`ETag: "4"`}},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", body: `{"dataDescription": ""}`, status: 201, want: definitionBody("", `{}`), shows: []string{`ETag: "5"`}},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", body: `{}`, status: 422, want: invalid("body", "must have a dataDescription or a schemaDefinition")},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", body: `{"dataDescription": null, "schemaDefinition": null}`, status: 422, want: invalid("body", "must have a dataDescription or a schemaDefinition")},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", body: `{"schemaDefinition": {"a": 1}}`, status: 422, want: invalid("schemaDefinition.a", "must be of type string")},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", body: `{"schemaDefinition": {"a": null}}`, status: 422, want: invalid("schemaDefinition.a", "must be of type string")},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", body: `{"schemaDefinition": {"a": {"b": "c"}}}`, status: 422, want: invalid("schemaDefinition.a", "must be of type string")},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", body: `{"schemaDefinition": {"a\u0000": "b"}}`, status: 422, want: invalid("schemaDefinition", "contains the character U+0000")},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", body: `{"dataDescription": "` + strings.Repeat("🌾", 10001) + `"}`, status: 422, want: invalid("dataDescription", "must have at most 10000 characters")},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", body: `{"dataDescription": "` + strings.Repeat("🌾", 10000) + `"}`, status: 201, want: definitionBody(strings.Repeat("🌾", 10000), `{}`), shows: []string{`ETag: "6"`}},
			{as: "dee", do: "GET /schema/self/n/datasets", status: 200, want: page(itemBody("dee/n/d", "owner", "schema", strings.Repeat("🌾", 200)))},

			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", header: []string{`If-Match: "6"`}, body: `{"dataDescription": "Seven"}`, status: 201, want: definitionBody("Seven", `{}`), shows: []string{`ETag: "7"`}},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", header: []string{`If-Match: "6"`}, body: `{"dataDescription": "x"}`, status: 412, want: changedSince},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", header: []string{`If-Match: "8"`}, body: `{"dataDescription": "x"}`, status: 412, want: changedSince},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", header: []string{`If-Match: *`}, body: `{"dataDescription": "Eight"}`, status: 201, want: definitionBody("Eight", `{}`), shows: []string{`ETag: "8"`}},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", header: []string{`If-Match: garbage`}, body: `{"dataDescription": "x"}`, status: 412, want: changedSince},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", header: []string{`If-Match: W/"8"`}, body: `{"dataDescription": "x"}`, status: 412, want: changedSince},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", header: []string{`If-Match: "08"`}, body: `{"dataDescription": "x"}`, status: 412, want: changedSince},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", header: []string{`If-Match: "6", "7"`}, body: `{"dataDescription": "x"}`, status: 412, want: changedSince},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", header: []string{`If-Match: W/"8", "7"`}, body: `{"dataDescription": "x"}`, status: 412, want: changedSince},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", header: []string{`If-Match: "7", *`}, body: `{"dataDescription": "x"}`, status: 412, want: changedSince},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", header: []string{`If-Match: "a","8`}, body: `{"dataDescription": "x"}`, status: 412, want: changedSince},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", header: []string{`If-Match: "6",W/"7", "a,b" ,	"8"`}, body: `{"dataDescription": "Nine"}`, status: 201, want: definitionBody("Nine", `{}`), shows: []string{`ETag: "9"`}},
			{as: "dee", do: "PUT /data/self/n/d/inferDefinition", header: []string{`If-Match: garbage`}, body: `{}`, status: 422, want: invalid("body", "must have a dataDescription or a schemaDefinition")},
			{as: "dee", do: "PUT /data/self/n/absent/inferDefinition", header: []string{`If-Match: garbage`}, body: `{"dataDescription": "x"}`, status: 404, want: absent},
			{as: "dee", do: "PUT /data/self/n/absent/inferDefinition", body: `{"dataDescription": "x"}`, status: 404, want: absent},
			{as: "dee", do: "GET /data/self/n/absent/inferDefinition", status: 404, want: absent},
			{as: "dee", do: "GET /data/self/n/d/inferDefinition", status: 200, want: definitionBody("Nine", `{}`), shows: []string{`ETag: "9"`}},
			{as: "dee", do: "POST /ingest/new/n/described", body: `{"dataDescription": "From the start"}`, status: 201, want: datasetBody("dee/n/described", "From the start", "{}")},
			{as: "dee", do: "GET /data/self/n/described/inferDefinition", status: 200, want: definitionBody("From the start", `{}`), shows: []string{`ETag: "1"`}},
		}},
		{name: "sharing a namespace", steps: []step{
			{as: "nina", do: "GET /user/me", status: 200, want: account("nina", "nina")},
			{as: "sue", do: "POST /ingest/new/Shop/goods", status: 201, want: datasetBody("sue/Shop/goods", "", "{}")},
			{as: "sue", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares()},
			{as: "nina", do: "GET /data/sue/shop/goods", status: 404, want: absent},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("nina", "viewer"), status: 200},
			{as: "sue", do: "POST /permissions/namespaces/SUE/SHOP/shares", body: shareBody("@guests", "viewer"), status: 200},
			{as: "sue", do: "POST /permissions/namespaces/sue/shop/shares", body: shareBody("Max.Late", "editor"), status: 200},
			{as: "sue", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares(shareBody("@guests", "viewer"), pendingBody("max.late", "editor"), shareBody("nina", "viewer"))},

			{as: "nina", do: "GET /data/SUE/shop/goods", status: 200, want: datasetBody("sue/Shop/goods", "", "{}")},
			{as: "nina", do: "PUT /data/sue/shop/goods/inferDefinition", body: `{"dataDescription": "x"}`, status: 403, want: lacksRole("editor", "viewer")},
			{as: "nina", do: "POST /data/sue/shop/goods/clear", status: 403, want: lacksRole("editor", "viewer")},
			{as: "nina", do: "DELETE /data/sue/shop/goods", status: 403, want: lacksRole("owner", "viewer")},
			{as: "nina", do: "PATCH /data/sue/shop/goods", body: `{"name": "x"}`, status: 403, want: lacksRole("owner", "viewer")},
			{as: "nina", do: "GET /permissions/namespaces/sue/shop/shares", status: 403, want: ownerOnly},
			{as: "nina", do: "GET /schema/sue/namespaces", status: 200, want: page(namespaceBody("sue", "Shop", "schema", "viewer"))},
			{as: "nina", do: "GET /schema/sue/shop/datasets", status: 200, want: page(plainItem("sue/Shop/goods", "viewer"))},
			{as: "sue", do: "POST /ingest/new/shop/later", status: 201, want: datasetBody("sue/Shop/later", "", "{}")},
			{as: "nina", do: "GET /schema/sue/shop/datasets", status: 200, want: page(plainItem("sue/Shop/goods", "viewer"), plainItem("sue/Shop/later", "viewer"))},

			// Sharing again replaces the role, up and down.
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("NINA", "editor"), status: 200},
			{as: "sue", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares(shareBody("@guests", "viewer"), pendingBody("max.late", "editor"), shareBody("nina", "editor"))},
			{as: "nina", do: "PUT /data/sue/shop/goods/inferDefinition", body: `{"dataDescription": "Goods"}`, status: 201, want: definitionBody("Goods", "{}")},
			{as: "nina", do: "POST /data/sue/shop/goods/clear", status: 200, want: datasetBody("sue/Shop/goods", "Goods", "{}")},
			{as: "nina", do: "DELETE /data/sue/shop/goods", status: 403, want: lacksRole("owner", "editor")},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("nina", "viewer"), status: 200},
			{as: "nina", do: "POST /data/sue/shop/goods/clear", status: 403, want: lacksRole("editor", "viewer")},

			// Whoever comes with the name of a pending grant has it.
			{as: "max.late", do: "POST /data/sue/shop/goods/clear", status: 200, want: datasetBody("sue/Shop/goods", "Goods", "{}")},
			{as: "sue", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares(shareBody("@guests", "viewer"), shareBody("max.late", "editor"), shareBody("nina", "viewer"))},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("max.late", "viewer"), status: 200},
			{as: "sue", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares(shareBody("@guests", "viewer"), shareBody("max.late", "viewer"), shareBody("nina", "viewer"))},
			{as: "max.late", do: "POST /data/sue/shop/goods/clear", status: 403, want: lacksRole("editor", "viewer")},

			{as: "guest in guests", do: "GET /data/sue/shop/goods", status: 200, want: datasetBody("sue/Shop/goods", "Goods", "{}")},
			{as: "other in Guests", do: "GET /data/sue/shop/goods", status: 404, want: absent},
			{as: "guest in members", do: "GET /data/sue/shop/goods", status: 404, want: absent},

			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("self", "viewer"), status: 422, want: invalid("username", oneself)},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("Sue", "viewer"), status: 422, want: invalid("username", oneself)},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("two words", "viewer"), status: 422, want: invalid("username", nobodysName)},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody(strings.Repeat("x", 129), "viewer"), status: 422, want: invalid("username", nobodysName)},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("@", "viewer"), status: 422, want: invalid("username", "is not the name of a group")},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("", "viewer"), status: 422, want: invalid("username", "must have at least 1 character")},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("nina", "owner"), status: 422, want: invalid("role", badShareRole)},
			{as: "sue", do: "POST /permissions/namespaces/self/shop/shares", body: `{"username": "nina"}`, status: 422, want: invalid("role", "is required")},
			{as: "sue", do: "POST /permissions/namespaces/self/absent/shares", body: shareBody("nina", "viewer"), status: 404, want: absent},
			{as: "sue", do: "POST /permissions/namespaces/self/-absent/shares", body: shareBody("nina", "viewer"), status: 404, want: absent},
			{as: "sue", do: "POST /permissions/namespaces/nina/shop/shares", body: shareBody("nina", "viewer"), status: 403, want: ownerOnly},

			{as: "sue", do: "DELETE /permissions/namespaces/self/shop/shares", body: `{"username": "nina", "role": "owner"}`, status: 422, want: invalid("role", badShareRole)},
			{as: "sue", do: "DELETE /permissions/namespaces/self/shop/shares", body: `{"username": "stranger"}`, status: 404, want: absent},
			{as: "sue", do: "DELETE /permissions/namespaces/self/shop/shares", body: `{"username": "@strangers"}`, status: 404, want: absent},
			{as: "sue", do: "DELETE /permissions/namespaces/self/absent/shares", body: `{"username": "nina"}`, status: 404, want: absent},
			{as: "nina", do: "DELETE /permissions/namespaces/sue/shop/shares", body: `{"username": "nina"}`, status: 403, want: ownerOnly},
			{as: "sue", do: "DELETE /permissions/namespaces/self/shop/shares", body: `{"username": "nina", "role": "editor"}`, status: 200},
			{as: "nina", do: "GET /data/sue/shop/goods", status: 404, want: absent},
			{as: "nina", do: "GET /schema/sue/namespaces", status: 200, want: page()},
			{as: "nina", do: "GET /schema/sue/shop/datasets", status: 404, want: absent},
			{as: "sue", do: "DELETE /permissions/namespaces/self/shop/shares", body: `{"username": "nina"}`, status: 404, want: absent},
			{as: "sue", do: "DELETE /permissions/namespaces/SUE/SHOP/shares", body: `{"username": "MAX.late", "role": null}`, status: 200},
			{as: "sue", do: "DELETE /permissions/namespaces/self/shop/shares", body: `{"username": "@guests"}`, status: 200},
			{as: "guest in guests", do: "GET /data/sue/shop/goods", status: 404, want: absent},
			{as: "sue", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares()},
		}},
		{name: "sharing a dataset", steps: []step{
			{as: "dina", do: "GET /user/me", status: 200, want: account("dina", "dina")},
			{as: "dora", do: "POST /ingest/new/shop/goods", status: 201, want: datasetBody("dora/shop/goods", "", "{}")},
			{as: "dora", do: "POST /ingest/new/shop/secret", status: 201, want: datasetBody("dora/shop/secret", "", "{}")},
			{as: "dora", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("dina", "viewer"), status: 200},
			{as: "dora", do: "POST /permissions/datasets/DORA/SHOP/GOODS/shares", body: shareBody("@guests", "editor"), status: 200},
			{as: "dora", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("comes-later", "viewer"), status: 200},
			{as: "dora", do: "GET /permissions/datasets/self/shop/goods/shares", status: 200, want: shares(shareBody("@guests", "editor"), pendingBody("comes-later", "viewer"), shareBody("dina", "viewer"))},
			{as: "dora", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares()},
			{as: "dina", do: "GET /data/dora/shop/goods", status: 200, want: datasetBody("dora/shop/goods", "", "{}")},
			{as: "dina", do: "GET /data/dora/shop/secret", status: 404, want: absent},
			{as: "dina", do: "GET /permissions/datasets/dora/shop/goods/shares", status: 403, want: ownerOnly},
			{as: "dina", do: "GET /schema/dora/namespaces", status: 200, want: page(namespaceBody("dora", "shop", "schema", ""))},
			{as: "dina", do: "GET /schema/dora/shop/datasets", status: 200, want: page(plainItem("dora/shop/goods", "viewer"))},
			{as: "dina in guests", do: "GET /schema/dora/shop/datasets", status: 200, want: page(plainItem("dora/shop/goods", "editor"))},
			{as: "dina in guests", do: "POST /data/dora/shop/goods/clear", status: 200, want: datasetBody("dora/shop/goods", "", "{}")},
			{as: "comes-later", do: "GET /data/dora/shop/goods", status: 200, want: datasetBody("dora/shop/goods", "", "{}")},
			{as: "stranger", do: "GET /schema/dora/namespaces", status: 200, want: page()},
			{as: "stranger", do: "GET /schema/dora/shop/datasets", status: 404, want: absent},

			{as: "dora", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("dora", "viewer"), status: 422, want: invalid("username", oneself)},
			{as: "dora", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("self", "viewer"), status: 422, want: invalid("username", oneself)},
			{as: "dora", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("-dina", "viewer"), status: 422, want: invalid("username", nobodysName)},
			{as: "dora", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("dina", "reader"), status: 422, want: invalid("role", badShareRole)},
			{as: "dora", do: "POST /permissions/datasets/self/shop/absent/shares", body: shareBody("dina", "viewer"), status: 404, want: absent},
			{as: "dora", do: "GET /permissions/datasets/self/shop/absent/shares", status: 404, want: absent},

			// Ending a namespace grant leaves dataset grants; the highest role counts.
			{as: "dora", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("dina", "editor"), status: 200},
			{as: "dina", do: "POST /data/dora/shop/goods/clear", status: 200, want: datasetBody("dora/shop/goods", "", "{}")},
			{as: "dina", do: "GET /schema/dora/shop/datasets", status: 200, want: page(plainItem("dora/shop/goods", "editor"), plainItem("dora/shop/secret", "editor"))},
			{as: "dora", do: "DELETE /permissions/namespaces/self/shop/shares", body: `{"username": "dina"}`, status: 200},
			{as: "dina", do: "POST /data/dora/shop/goods/clear", status: 403, want: lacksRole("editor", "viewer")},
			{as: "dina", do: "GET /data/dora/shop/goods", status: 200, want: datasetBody("dora/shop/goods", "", "{}")},
			{as: "dina", do: "GET /data/dora/shop/secret", status: 404, want: absent},

			// Grants stay through a rename.
			{as: "dora", do: "PATCH /data/self/shop/goods", body: `{"name": "wares"}`, status: 200, want: datasetBody("dora/shop/wares", "", "{}")},
			{as: "dina", do: "GET /data/dora/shop/goods", status: 404, want: absent},
			{as: "dina", do: "GET /data/dora/shop/wares", status: 200, want: datasetBody("dora/shop/wares", "", "{}")},
			{as: "dora", do: "GET /permissions/datasets/self/shop/wares/shares", status: 200, want: shares(shareBody("@guests", "editor"), shareBody("comes-later", "viewer"), shareBody("dina", "viewer"))},

			{as: "dora", do: "DELETE /permissions/datasets/self/shop/wares/shares", body: `{"username": "dina", "role": "nobody"}`, status: 422, want: invalid("role", badShareRole)},
			{as: "dora", do: "DELETE /permissions/datasets/self/shop/wares/shares", body: `{"username": "dina", "role": "viewer"}`, status: 200},
			{as: "dora", do: "DELETE /permissions/datasets/self/shop/wares/shares", body: `{"username": "dina"}`, status: 404, want: absent},
			{as: "dora", do: "DELETE /permissions/datasets/self/shop/wares/shares", body: `{"username": "@guests"}`, status: 200},
			{as: "dora", do: "DELETE /permissions/datasets/self/shop/wares/shares", body: `{"username": "comes-later"}`, status: 200},
			{as: "dina", do: "GET /data/dora/shop/wares", status: 404, want: absent},
			{as: "dina", do: "GET /schema/dora/namespaces", status: 200, want: page()},
			{as: "dina", do: "GET /schema/dora/shop/datasets", status: 404, want: absent},
		}},
		{name: "a deleted dataset leaves nothing behind", steps: []step{
			{as: "vera", do: "GET /user/me", status: 200, want: account("vera", "vera")},
			{as: "del", do: "POST /ingest/new/n/d", body: `{"dataDescription": "first"}`, status: 201, want: datasetBody("del/n/d", "first", "{}")},
			{as: "del", do: "POST /permissions/datasets/self/n/d/shares", body: shareBody("vera", "editor"), status: 200},
			{as: "vera", do: "GET /schema/datasets/all", status: 200, want: page(itemBody("del/n/d", "editor", "schema", "first"))},
			{as: "del", do: "DELETE /data/self/n/d", status: 204},
			{as: "vera", do: "GET /data/del/n/d", status: 404, want: absent},
			{as: "vera", do: "GET /schema/datasets/all", status: 200, want: page()},
			{as: "vera", do: "GET /schema/del/namespaces", status: 200, want: page()},
			{as: "vera", do: "GET /schema/del/n/datasets", status: 404, want: absent},
			{as: "del", do: "POST /ingest/new/n/d", status: 201, want: datasetBody("del/n/d", "", "{}")},
			{as: "del", do: "GET /data/self/n/d/inferDefinition", status: 200, want: definitionBody("", "{}"), shows: []string{`ETag: "0"`}},
			{as: "del", do: "GET /permissions/datasets/self/n/d/shares", status: 200, want: shares()},
			{as: "vera", do: "GET /data/del/n/d", status: 404, want: absent},
			{as: "vera", do: "GET /schema/del/n/datasets", status: 404, want: absent},

			// The operator can bring it back, when its name is free.
			{do: "quernd dataset restore del/n/d", status: 1, want: "quernd: Another dataset has the name now. Rename it first."},
			{as: "del", do: "PATCH /data/self/n/d", body: `{"name": "second"}`, status: 200, want: datasetBody("del/n/second", "", "{}")},
			{do: "quernd dataset restore DEL/N/D", want: "DEL/N/D is restored\n"},
			{as: "vera", do: "POST /data/del/n/d/clear", status: 200, want: datasetBody("del/n/d", "first", "{}")},
			{as: "del", do: "GET /permissions/datasets/self/n/d/shares", status: 200, want: shares(shareBody("vera", "editor"))},
			{as: "del", do: "GET /schema/self/n/datasets", status: 200, want: page(itemBody("del/n/d", "owner", "schema", "first"), plainItem("del/n/second", "owner"))},
			{do: "quernd dataset restore del/n/d", status: 1, want: "quernd: Nothing that was deleted at del/n/d can be restored."},
			{do: "quernd dataset restore del/n/absent", status: 1, want: "quernd: Nothing that was deleted at del/n/absent can be restored."},
			{do: "quernd dataset restore nobody-at-all/n/d", status: 1, want: "quernd: Nothing that was deleted at nobody-at-all/n/d can be restored."},
			{do: "quernd dataset restore d", status: 1, want: "quernd: The request is not valid. path must be OWNER/NAMESPACE/DATASET."},

			// Also when its namespace is gone, or another one has the namespace's name.
			{as: "del", do: "POST /permissions/namespaces/self/n/shares", body: shareBody("walt", "viewer"), status: 200},
			{as: "del", do: "DELETE /data/self/n/d", status: 204},
			{as: "del", do: "DELETE /data/self/n/second", status: 204},
			{as: "del", do: "DELETE /schema/self/namespaces/n", status: 204},
			{do: "quernd dataset restore del/n/second", want: "del/n/second is restored\n"},
			{as: "del", do: "GET /permissions/namespaces/self/n/shares", status: 200, want: shares()},
			{as: "walt", do: "GET /data/del/n/second", status: 404, want: absent},
			{as: "del", do: "DELETE /data/self/n/second", status: 204},
			{as: "del", do: "DELETE /schema/self/namespaces/n", status: 204},
			{as: "del", do: "POST /schema/self/namespaces", body: `{"name": "N"}`, status: 201, want: namespaceBody("del", "N", "schema", "owner")},
			{as: "walt", do: "GET /schema/del/n/datasets", status: 404, want: absent},
			{do: "quernd dataset restore del/n/d", want: "del/n/d is restored\n"},
			{as: "vera", do: "GET /data/del/n/d", status: 200, want: datasetBody("del/N/d", "first", "{}")},
			{as: "vera", do: "GET /schema/datasets/all", status: 200, want: page(itemBody("del/N/d", "editor", "schema", "first"))},
			{as: "vera", do: "GET /schema/del/n/datasets", status: 200, want: page(itemBody("del/N/d", "editor", "schema", "first"))},
		}},
		{name: "the grace of a deletion ends", settings: []string{}, steps: []step{
			{as: "gus", do: "POST /ingest/new/n/d", status: 201, want: datasetBody("gus/n/d", "", "{}")},
			{as: "gus", do: "DELETE /data/self/n/d", status: 204},
			{do: "sql UPDATE datasets SET deleted_at = deleted_at - interval '8 days'"},
			{do: "quernd dataset restore gus/n/d", status: 1, want: "quernd: Nothing that was deleted at gus/n/d can be restored."},
		}},
		{name: "a dataset is handed over", steps: []step{
			{as: "tia", do: "GET /user/me", status: 200, want: account("tia", "tia")},
			{as: "tess", do: "GET /user/me", status: 200, want: account("tess", "tess")},
			{as: "tom", do: "POST /ingest/new/Shop/goods", body: `{"dataDescription": "Goods", "schemaDefinition": {"a": "A"}}`, status: 201, want: datasetBody("tom/Shop/goods", "Goods", `{"a": "A"}`)},
			{as: "tom", do: "PUT /data/self/shop/goods/inferDefinition", body: `{"dataDescription": "More"}`, status: 201, want: definitionBody("More", `{"a": "A"}`), shows: []string{`ETag: "2"`}},
			{as: "tom", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("tia", "editor"), status: 200},
			{as: "tom", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("tess", "viewer"), status: 200},
			{as: "tom", do: "POST /permissions/datasets/self/shop/goods/shares", body: shareBody("not-yet", "viewer"), status: 200},
			{as: "tom", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("@guests", "viewer"), status: 200},
			{do: "quernd dataset transfer tom/shop/goods nobody-at-all", status: 1, want: `quernd: There is no other user "nobody-at-all".`},
			{do: "quernd dataset transfer tom/shop/goods tom", status: 1, want: `quernd: There is no other user "tom".`},
			{do: "quernd dataset transfer tom/shop/absent tess", status: 1, want: `quernd: There is no dataset tom/shop/absent.`},
			{do: "quernd dataset transfer tom/shop/goods Tess", want: "tom/shop/goods now belongs to Tess\n"},
			{as: "tom", do: "GET /data/self/shop/goods", status: 404, want: absent},
			{as: "tom", do: "GET /data/tess/shop/goods", status: 404, want: absent},
			{as: "tess", do: "GET /data/self/shop/goods", status: 200, want: datasetBody("tess/Shop/goods", "More", `{"a": "A"}`)},
			{as: "tess", do: "GET /data/self/shop/goods/inferDefinition", status: 200, want: definitionBody("More", `{"a": "A"}`), shows: []string{`ETag: "2"`}},
			{as: "tess", do: "GET /permissions/datasets/self/shop/goods/shares", status: 200, want: shares(pendingBody("not-yet", "viewer"), shareBody("tia", "editor"))},
			{as: "tess", do: "GET /permissions/namespaces/self/shop/shares", status: 200, want: shares()},
			{as: "tia", do: "GET /schema/datasets/all", status: 200, want: page(itemBody("tess/Shop/goods", "editor", "schema", "More"))},
			{as: "guest in guests", do: "GET /data/tess/shop/goods", status: 404, want: absent},
			{as: "tom", do: "POST /ingest/new/shop/goods", status: 201, want: datasetBody("tom/Shop/goods", "", "{}")},
			{as: "tia", do: "GET /data/tom/shop/goods", status: 404, want: absent},
			{do: "quernd dataset transfer tom/shop/goods tess", status: 1, want: "quernd: The new owner has a dataset of this name."},
			{as: "tom", do: "GET /data/self/shop/goods", status: 200, want: datasetBody("tom/Shop/goods", "", "{}")},
			{as: "tess", do: "GET /audit", status: 200, want: page(
				`{"id": "<a uuid>", "at": "<at now>", "username": "operator", "action": "dataset.receive", "target": {"kind": "dataset", "id": "<goods uuid>", "namespace": "Shop", "dataset": "goods"}, "detail": "", "outcome": "done", "address": "", "requestId": ""}`,
				`{"id": "<a uuid>", "at": "<at now>", "username": "operator", "action": "namespace.create", "target": {"kind": "namespace", "id": "<shop uuid>", "namespace": "Shop"}, "detail": "", "outcome": "done", "address": "", "requestId": ""}`,
				auditBody("tess", "account.create", `{"kind": "account", "id": "<tess>"}`, ""))},
		}},
		{name: "a name changes hands and its next bearer inherits nothing", steps: []step{
			{as: "rob", do: "POST /ingest/new/n/d", status: 201, want: datasetBody("rob/n/d", "", "{}")},
			{as: "rob", do: "POST /permissions/datasets/self/n/d/shares", body: shareBody("rita", "viewer"), status: 200},
			{do: "quernd user release rita", status: 1, want: `quernd: There is no user "rita".`},
			{as: "rob", do: "GET /permissions/datasets/self/n/d/shares", status: 200, want: shares(pendingBody("rita", "viewer"))},
			{as: "rita", do: "GET /data/rob/n/d", status: 200, want: datasetBody("rob/n/d", "", "{}")},
			{as: "rob", do: "POST /permissions/namespaces/self/n/shares", body: shareBody("rita", "editor"), status: 200},
			{as: "rita", do: "GET /user/me", status: 200, want: account("rita", "rita")},
			{do: "quernd user release rita", want: "rita is free; the account that had it is now released-<rita>, disabled, and keeps what it owns\n"},
			{as: "new:rita", do: "GET /data/rob/n/d", status: 404, want: absent},
			{as: "new:rita", do: "GET /schema/datasets/all", status: 200, want: page()},
			{as: "rob", do: "GET /permissions/datasets/self/n/d/shares", status: 200, want: shares(`{"username": "<released text>", "role": "viewer"}`)},
			{as: "rob", do: "GET /permissions/namespaces/self/n/shares", status: 200, want: shares(`{"username": "<released>", "role": "editor"}`)},
			{as: "rob", do: "POST /permissions/datasets/self/n/d/shares", body: shareBody("rita", "viewer"), status: 200},
			{as: "new:rita", do: "GET /data/rob/n/d", status: 200, want: datasetBody("rob/n/d", "", "{}")},
			{as: "rob", do: "DELETE /permissions/datasets/self/n/d/shares", body: `{"username": "<released>"}`, status: 200},
			{as: "rob", do: "GET /permissions/datasets/self/n/d/shares", status: 200, want: shares(shareBody("rita", "viewer"))},

			// What the released account owns stays with it.
			{as: "rex", do: "POST /ingest/new/n/d", status: 201, want: datasetBody("rex/n/d", "", "{}")},
			{as: "rex", do: "POST /permissions/datasets/self/n/d/shares", body: shareBody("rob", "viewer"), status: 200},
			{as: "rex", do: "GET /user/me", status: 200, want: account("rex", "rex")},
			{do: "quernd user release rex", want: "rex is free; the account that had it is now released-<rex>, disabled, and keeps what it owns\n"},
			{as: "new:rex-too", do: "GET /data/rex/n/d", status: 404, want: absent},
			{as: "rob", do: "GET /data/rex/n/d", status: 404, want: absent},
			{as: "rob", do: "GET /data/released-<rex>/n/d", status: 200, want: `{"dataset": {"owner": "<owner text>", "namespace": "n", "name": "d"}, "metadata": {"columnNames": [], "columns": [], "rowCount": 0, "engine": "duckdb", "dataDescription": "", "schemaDefinition": {}}}`},
		}},
		{name: "all that one can see: one's own, then what is shared by name, by user and by group", steps: []step{
			{as: "ann", do: "POST /ingest/new/a/one", status: 201, want: datasetBody("ann/a/one", "", "{}")},
			{as: "ann", do: "POST /ingest/new/a/two", status: 201, want: datasetBody("ann/a/two", "", "{}")},
			{as: "ann", do: "POST /ingest/new/b/three", status: 201, want: datasetBody("ann/b/three", "", "{}")},
			{as: "ann", do: "POST /ingest/new/b/hidden", status: 201, want: datasetBody("ann/b/hidden", "", "{}")},
			{as: "ann", do: "POST /ingest/new/c/hidden", status: 201, want: datasetBody("ann/c/hidden", "", "{}")},
			{as: "ann", do: "POST /permissions/datasets/self/b/three/shares", body: shareBody("all", "viewer"), status: 200},
			{as: "all in team", do: "GET /schema/datasets/all", status: 200, want: page(plainItem("ann/b/three", "viewer"))},
			{as: "ann", do: "POST /permissions/namespaces/self/a/shares", body: shareBody("@team", "editor"), status: 200},
			{as: "ann", do: "POST /permissions/datasets/self/a/two/shares", body: shareBody("all", "viewer"), status: 200},
			{as: "all in team", do: "POST /ingest/new/z/mine", status: 201, want: datasetBody("all/z/mine", "", "{}")},
			{as: "all in team", do: "POST /permissions/namespaces/self/z/shares", body: shareBody("@team", "viewer"), status: 200},
			{as: "all in team", do: "POST /ingest/new/y/mine-too", status: 201, want: datasetBody("all/y/mine-too", "", "{}")},
			{as: "all in team", do: "GET /schema/datasets/all", status: 200, want: page(plainItem("all/z/mine", "owner"), plainItem("all/y/mine-too", "owner"),
				plainItem("ann/a/one", "editor"), plainItem("ann/a/two", "editor"), plainItem("ann/b/three", "viewer"))},
			{as: "all in team", do: "GET /schema/datasets/all?limit=3", status: 200, want: firstPage("next", plainItem("all/z/mine", "owner"), plainItem("all/y/mine-too", "owner"), plainItem("ann/a/one", "editor"))},
			{as: "all in team", do: "GET /schema/datasets/all?limit=2&cursor=<next>", status: 200, want: page(plainItem("ann/a/two", "editor"), plainItem("ann/b/three", "viewer"))},
			{as: "all in team", do: "GET /schema/self/namespaces", status: 200, want: page(namespaceBody("all", "z", "schema", "owner"), namespaceBody("all", "y", "schema", "owner"))},
			{as: "all in team", do: "GET /schema/ann/namespaces", status: 200, want: page(namespaceBody("ann", "a", "schema", "editor"), namespaceBody("ann", "b", "schema", ""))},
			{as: "all", do: "GET /schema/datasets/all", status: 200, want: page(plainItem("all/z/mine", "owner"), plainItem("all/y/mine-too", "owner"), plainItem("ann/a/two", "viewer"), plainItem("ann/b/three", "viewer"))},
			{as: "all", do: "GET /schema/datasets/all?cursor=nonsense", status: 422, want: invalid("cursor", "is not one that a page before gave")},
			{as: "all", do: "GET /schema/datasets/all?limit=0", status: 422, want: invalid("limit", "must be at least 1")},
		}},
		{name: "datasets are found by words, among those that the caller may see", steps: []step{
			{as: "finder", do: "POST /ingest/new/Shop/orders", body: `{"dataDescription": "Every sale"}`, status: 201, want: datasetBody("finder/Shop/orders", "Every sale", "{}")},
			{as: "finder", do: "POST /ingest/new/Shop/Orders_archive", status: 201, want: datasetBody("finder/Shop/Orders_archive", "", "{}")},
			{as: "finder", do: "POST /ingest/new/HR/staff", body: `{"dataDescription": "Who signs orders, à Genève", "schemaDefinition": {"boss": "The superior"}}`, status: 201, want: datasetBody("finder/HR/staff", "Who signs orders, à Genève", `{"boss": "The superior"}`)},
			{as: "finder", do: "GET /schema/datasets/all?q=ORDER", status: 200, want: page(itemBody("finder/Shop/orders", "owner", "schema", "Every sale"), plainItem("finder/Shop/Orders_archive", "owner"), itemBody("finder/HR/staff", "owner", "schema", "Who signs orders, à Genève"))},
			{as: "finder", do: "GET /schema/datasets/all?q=order&limit=2", status: 200, want: firstPage("next", itemBody("finder/Shop/orders", "owner", "schema", "Every sale"), plainItem("finder/Shop/Orders_archive", "owner"))},
			{as: "finder", do: "GET /schema/datasets/all?q=order&limit=2&cursor=<next>", status: 200, want: page(itemBody("finder/HR/staff", "owner", "schema", "Who signs orders, à Genève"))},
			{as: "finder", do: "GET /schema/datasets/all?cursor=<next>", status: 422, want: invalid("cursor", "is not one that a page before gave")},
			{as: "finder", do: "GET /schema/datasets/all?q=archve+oders", status: 200, want: page(plainItem("finder/Shop/Orders_archive", "owner"), itemBody("finder/Shop/orders", "owner", "schema", "Every sale"))},
			{as: "finder", do: "GET /schema/datasets/all?q=geneve+superiors", status: 200, want: page(itemBody("finder/HR/staff", "owner", "schema", "Who signs orders, à Genève"))},
			{as: "finder", do: "GET /schema/datasets/all?q=", status: 422, want: invalid("q", "must have at least 1 character")},
			{as: "finder", do: "GET /schema/datasets/all?q=%27%26%7C%21%28", status: 200, want: page()},

			{as: "seeker", do: "GET /schema/datasets/all?q=orders", status: 200, want: page()},
			{as: "finder", do: "POST /permissions/datasets/self/hr/staff/shares", body: shareBody("seeker", "viewer"), status: 200},
			{as: "seeker", do: "GET /schema/datasets/all?q=orders", status: 200, want: page(itemBody("finder/HR/staff", "viewer", "schema", "Who signs orders, à Genève"))},
			{as: "finder", do: "POST /permissions/namespaces/self/shop/shares", body: shareBody("@shop", "editor"), status: 200},
			{as: "seeker in shop", do: "GET /schema/datasets/all?q=orders", status: 200, want: page(itemBody("finder/Shop/orders", "editor", "schema", "Every sale"), plainItem("finder/Shop/Orders_archive", "editor"), itemBody("finder/HR/staff", "viewer", "schema", "Who signs orders, à Genève"))},
			{as: "finder", do: "POST /user/token", body: `{"name": "hr", "role": "viewer", "accessRestrictedTo": [{"username": "self", "namespace": "HR"}]}`, status: 200, want: restricted("hr", "viewer", target("finder", "HR", ""))},
			{as: "<hr-token>", do: "GET /schema/datasets/all?q=orders", status: 200, want: page(itemBody("finder/HR/staff", "viewer", "schema", "Who signs orders, à Genève"))},

			{as: "finder", do: "PATCH /data/self/shop/orders", body: `{"name": "sales"}`, status: 200, want: datasetBody("finder/Shop/sales", "Every sale", "{}")},
			{as: "finder", do: "DELETE /data/self/shop/orders_archive", status: 204},
			{as: "finder", do: "PUT /data/self/HR/staff/inferDefinition", body: `{"dataDescription": "People"}`, status: 201, want: definitionBody("People", `{"boss": "The superior"}`)},
			{as: "finder", do: "GET /schema/datasets/all?q=orders", status: 200, want: page()},
			{as: "finder", do: "GET /schema/datasets/all?q=people", status: 200, want: page(itemBody("finder/HR/staff", "owner", "schema", "People"))},
		}},
		{name: "a restricted token keeps to its targets through renames, not through re-creation", steps: []step{
			{as: "kay", do: "POST /ingest/new/N/d", status: 201, want: datasetBody("kay/N/d", "", "{}")},
			{as: "kay", do: "POST /ingest/new/N/e", status: 201, want: datasetBody("kay/N/e", "", "{}")},
			{as: "kay", do: "POST /ingest/new/M/f", status: 201, want: datasetBody("kay/M/f", "", "{}")},
			{as: "kay", do: "POST /user/token", body: `{"name": "d", "accessRestrictedTo": [{"username": "SELF", "namespace": "n", "dataset": "D"}]}`, status: 200, want: restricted("d", "editor", target("kay", "N", "d"))},
			{as: "kay", do: "POST /user/token", body: `{"name": "n", "role": "viewer", "accessRestrictedTo": [{"username": "kay", "namespace": "N"}, {"username": "self", "namespace": "m", "dataset": "f"}]}`, status: 200, want: restricted("n", "viewer", target("kay", "N", ""), target("kay", "M", "f"))},
			{as: "kay", do: "POST /user/token", body: `{"name": "twice", "accessRestrictedTo": [{"username": "kay", "namespace": "N", "dataset": "d"}, {"username": "self", "namespace": "n", "dataset": "D"}]}`, status: 200, want: restricted("twice", "editor", target("kay", "N", "d"))},
			{as: "kay", do: "POST /user/token", body: `{"name": "x", "role": "owner", "accessRestrictedTo": [{"username": "kay", "namespace": "N"}]}`, status: 403, want: beyondRights("role", "A restricted token allows editor at most.")},
			{as: "kay", do: "POST /user/token", body: `{"name": "x", "accessRestrictedTo": [{"username": "kay", "namespace": "N"}, {"username": "kay", "namespace": "absent"}]}`, status: 422, want: invalid("accessRestrictedTo.1", unseenTarget)},
			{as: "kay", do: "POST /user/token", body: `{"name": "x", "accessRestrictedTo": [{"username": "dan", "namespace": "Sales"}]}`, status: 422, want: invalid("accessRestrictedTo.0", unseenTarget)},
			{as: "kay", do: "POST /user/token", body: `{"name": "x", "accessRestrictedTo": [{"username": "kay"}]}`, status: 422, want: invalid("accessRestrictedTo.0.namespace", "is required")},

			{as: "<twice-token>", do: "GET /schema/datasets/all", status: 200, want: page(plainItem("kay/N/d", "editor"))},
			{as: "<n-token>", do: "GET /schema/datasets/all", status: 200, want: page(plainItem("kay/N/d", "viewer"), plainItem("kay/N/e", "viewer"), plainItem("kay/M/f", "viewer"))},
			{as: "<n-token>", do: "GET /schema/datasets/all?limit=2", status: 200, want: firstPage("next", plainItem("kay/N/d", "viewer"), plainItem("kay/N/e", "viewer"))},
			{as: "<n-token>", do: "GET /schema/datasets/all?limit=2&cursor=<next>", status: 200, want: page(plainItem("kay/M/f", "viewer"))},
			{as: "<n-token>", do: "GET /schema/self/namespaces", status: 200, want: page(namespaceBody("kay", "N", "schema", "viewer"), namespaceBody("kay", "M", "schema", ""))},
			{as: "<d-token>", do: "GET /schema/self/namespaces", status: 200, want: page(namespaceBody("kay", "N", "schema", ""))},
			{as: "<d-token>", do: "GET /schema/self/n/datasets", status: 200, want: page(plainItem("kay/N/d", "editor"))},
			{as: "<d-token>", do: "GET /schema/self/m/datasets", status: 404, want: absent},
			{as: "<d-token>", do: "GET /data/self/n/d", status: 200, want: datasetBody("kay/N/d", "", "{}")},
			{as: "<d-token>", do: "GET /data/self/n/e", status: 404, want: absent},
			{as: "<d-token>", do: "POST /data/self/n/d/clear", status: 200, want: datasetBody("kay/N/d", "", "{}")},
			{as: "<d-token>", do: "PATCH /data/self/n/d", body: `{"name": "x"}`, status: 403, want: lacksRole("owner", "editor")},
			{as: "<d-token>", do: "DELETE /data/self/n/d", status: 403, want: lacksRole("owner", "editor")},
			{as: "<d-token>", do: "GET /permissions/datasets/self/n/d/shares", status: 403, want: lacksRole("owner", "editor")},
			{as: "<d-token>", do: "POST /ingest/new/n/new", status: 403, want: plainFault("FORBIDDEN", "A restricted token cannot create this.")},
			{as: "<d-token>", do: "POST /ingest/new/new/new", status: 403, want: plainFault("FORBIDDEN", "A restricted token cannot create this.")},
			{as: "<d-token>", do: "GET /audit", status: 403, want: plainFault("FORBIDDEN", "This needs a token with the role owner, and without restriction.")},

			{as: "kay", do: "PATCH /data/self/n/d", body: `{"name": "renamed"}`, status: 200, want: datasetBody("kay/N/renamed", "", "{}")},
			{as: "<d-token>", do: "GET /data/self/n/renamed", status: 200, want: datasetBody("kay/N/renamed", "", "{}")},
			{as: "kay", do: "GET /user/tokens?limit=1", status: 200, want: `{"data": [{"id": "<twice>", "name": "twice", "role": "editor", "accessRestrictedTo": [` + target("kay", "N", "renamed") + `],
				"created_at": "<at now>", "expires_at": "<at now+2160h>", "last_used_at": "<at now>"}], "nextCursor": "<next text>"}`},
			{as: "kay", do: "DELETE /data/self/n/renamed", status: 204},
			{as: "<d-token>", do: "GET /data/self/n/renamed", status: 404, want: absent},
			{as: "kay", do: "POST /ingest/new/n/renamed", status: 201, want: datasetBody("kay/N/renamed", "", "{}")},
			{as: "<d-token>", do: "GET /data/self/n/renamed", status: 404, want: absent},
			{as: "<d-token>", do: "GET /schema/datasets/all", status: 200, want: page()},
			{as: "<d-token>", do: "GET /schema/self/namespaces", status: 200, want: page()},
			{as: "<d-token>", do: "GET /schema/self/n/datasets", status: 404, want: absent},
			{as: "<n-token>", do: "GET /data/self/n/renamed", status: 200, want: datasetBody("kay/N/renamed", "", "{}")},
			{as: "kay", do: "GET /user/tokens?limit=1", status: 200, want: `{"data": [{"id": "<twice>", "name": "twice", "role": "editor", "accessRestrictedTo": [],
				"created_at": "<at now>", "expires_at": "<at now+2160h>", "last_used_at": "<at now>"}], "nextCursor": "<next text>"}`},
		}},
		{name: "a restricted token on what others have shared", steps: []step{
			{as: "lena", do: "GET /user/me", status: 200, want: account("lena", "lena")},
			{as: "leo", do: "POST /ingest/new/n/d", status: 201, want: datasetBody("leo/n/d", "", "{}")},
			{as: "leo", do: "POST /ingest/new/n/e", status: 201, want: datasetBody("leo/n/e", "", "{}")},
			{as: "leo", do: "POST /permissions/namespaces/self/n/shares", body: shareBody("lena", "editor"), status: 200},
			{as: "lena", do: "POST /ingest/new/own/d", status: 201, want: datasetBody("lena/own/d", "", "{}")},
			{as: "lena", do: "POST /user/token", body: `{"name": "d", "accessRestrictedTo": [{"username": "leo", "namespace": "n", "dataset": "d"}]}`, status: 200, want: restricted("d", "editor", target("leo", "n", "d"))},
			{as: "lena", do: "POST /user/token", body: `{"name": "v", "role": "viewer"}`, status: 200, want: created("v", "v", "viewer", "<v-expires now+2160h>")},
			{as: "<d-token>", do: "GET /schema/datasets/all", status: 200, want: page(plainItem("leo/n/d", "editor"))},
			{as: "<d-token>", do: "POST /data/leo/n/d/clear", status: 200, want: datasetBody("leo/n/d", "", "{}")},
			{as: "<d-token>", do: "GET /data/leo/n/e", status: 404, want: absent},
			{as: "<d-token>", do: "GET /data/self/own/d", status: 404, want: absent},
			{as: "<v-token>", do: "GET /schema/datasets/all", status: 200, want: page(plainItem("lena/own/d", "viewer"), plainItem("leo/n/d", "viewer"), plainItem("leo/n/e", "viewer"))},
			{as: "<v-token>", do: "POST /data/leo/n/d/clear", status: 403, want: lacksRole("editor", "viewer")},
			{as: "<v-token>", do: "POST /data/self/own/d/clear", status: 403, want: lacksRole("editor", "viewer")},
			{as: "<v-token>", do: "POST /ingest/new/own/x", status: 403, want: plainFault("FORBIDDEN", "The token in use allows viewer at most.")},
			{as: "<v-token>", do: "POST /schema/self/namespaces", body: `{"name": "x"}`, status: 403, want: plainFault("FORBIDDEN", "The token in use allows viewer at most.")},
			{as: "leo", do: "DELETE /permissions/namespaces/self/n/shares", body: `{"username": "lena"}`, status: 200},
			{as: "<d-token>", do: "GET /data/leo/n/d", status: 404, want: absent},
			{as: "<d-token>", do: "GET /schema/datasets/all", status: 200, want: page()},
			{as: "<d-token>", do: "GET /schema/leo/namespaces", status: 200, want: page()},
			{as: "<d-token>", do: "GET /schema/leo/n/datasets", status: 404, want: absent},
		}},
		{name: "what happened is shown to the owner", steps: []step{
			{as: "amy", do: "GET /user/me", status: 200, want: account("amy", "amy")},
			{as: "amy", do: "POST /ingest/new/n/d", status: 201, want: datasetBody("amy/n/d", "", "{}")},
			{as: "amy", do: "POST /user/token", body: `{"name": "o", "role": "owner"}`, status: 200, want: created("o", "o", "owner", "<o-expires now+2160h>")},
			{as: "amy", do: "POST /user/token", body: `{"name": "e"}`, status: 200, want: created("e", "e", "editor", "<e-expires now+2160h>")},
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
			{as: "<e-token>", do: "GET /audit", status: 403, want: plainFault("FORBIDDEN", "This needs a token with the role owner, and without restriction.")},
			{as: "amy", do: "GET /audit?cursor=nonsense", status: 422, want: invalid("cursor", "is not one that a page before gave")},
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
			// What was refused is not remembered.
			{as: "ida", do: "POST /ingest/new/n/e", header: []string{"Idempotency-Key: n2"}, status: 201, want: datasetBody("ida/n/e", "", "{}")},
			{as: "ida", do: "POST /permissions/datasets/self/n/d/shares", header: []string{"Idempotency-Key: s"}, body: shareBody("ike", "viewer"), status: 200},
			{as: "ida", do: "DELETE /permissions/datasets/self/n/d/shares", body: `{"username": "ike"}`, status: 200},
			{as: "ida", do: "POST /permissions/datasets/self/n/d/shares", header: []string{"Idempotency-Key: s"}, body: shareBody("ike", "viewer"), status: 200},
			{as: "ida", do: "GET /permissions/datasets/self/n/d/shares", status: 200, want: shares()},
			{as: "ida", do: "POST /permissions/datasets/self/n/d/shares", header: []string{"Idempotency-Key: s"}, body: shareBody("ike", "editor"), status: 422, want: invalid("Idempotency-Key", "was used with another request; use a new key")},
			{as: "ida", do: "POST /permissions/namespaces/self/n/shares", header: []string{"Idempotency-Key: s"}, body: shareBody("ike", "viewer"), status: 200},
			{as: "ida", do: "POST /permissions/namespaces/self/n/shares", header: []string{"Idempotency-Key: s"}, body: shareBody("ike", "viewer"), status: 200},
			{as: "ida", do: "GET /permissions/namespaces/self/n/shares", status: 200, want: shares(pendingBody("ike", "viewer"))},
			// The answer is about what was made then, as it is now.
			{as: "ida", do: "PATCH /data/self/n/d", body: `{"name": "renamed"}`, status: 200, want: datasetBody("ida/n/renamed", "One", "{}")},
			{as: "ida", do: "POST /ingest/new/n/d", header: []string{"Idempotency-Key: n"}, body: `{"dataDescription": "One"}`, status: 201, want: datasetBody("ida/n/renamed", "One", "{}")},
			{as: "ida", do: "POST /user/token", header: []string{"Idempotency-Key: t"}, body: `{"name": "t", "accessRestrictedTo": [{"username": "self", "namespace": "n", "dataset": "renamed"}]}`, status: 200, want: restricted("t", "editor", target("ida", "n", "renamed"))},
			{as: "ida", do: "PATCH /data/self/n/renamed", body: `{"name": "again"}`, status: 200, want: datasetBody("ida/n/again", "One", "{}")},
			{as: "ida", do: "POST /user/token", header: []string{"Idempotency-Key: t"}, body: `{"name": "t", "accessRestrictedTo": [{"username": "self", "namespace": "n", "dataset": "renamed"}]}`, status: 200, want: restricted("t", "editor", target("ida", "n", "again"))},
		}},
	}
}

// restricted is the answer to a new token that reaches only its targets. x is its name and is bound as in created.
func restricted(x, role string, targets ...string) string {
	return `{"id": "<` + x + ` uuid>", "name": "` + x + `", "role": "` + role + `", "accessRestrictedTo": [` + strings.Join(targets, ", ") + `],
		"created_at": "<at now>", "expires_at": "<at now+2160h>", "token": "<` + x + `-token token>"}`
}

// target is one of them; without a dataset it is a whole namespace.
func target(username, namespace, dataset string) string {
	if dataset != "" {
		dataset = `, "dataset": "` + dataset + `"`
	}

	return `{"username": "` + username + `", "namespace": "` + namespace + `"` + dataset + `}`
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
		shared.exec(`INSERT INTO usage (account_id, day, kind, amount) SELECT account_id, (now() AT TIME ZONE 'UTC')::date - 1, 'rows', 3 FROM directory_names WHERE username = 'user'`)
		shared.exec(`INSERT INTO limits (account_id, kind, amount) SELECT account_id, 'questions', 5 FROM directory_names WHERE username = 'user'`)
		shared.exec(`INSERT INTO limits (account_id, kind, amount) SELECT account_id, 'bytes', 9 FROM directory_names WHERE username = 'user'`)

		today := time.Now().UTC().Truncate(24 * time.Hour)
		answer := call(t, http.MethodGet, shared.url+"/user/usage", user, "")
		require.JSONEq(t, fmt.Sprintf(`{"date": %q, "resetsAt": %q, "items": [{"kind": "bytes", "used": 0, "limit": 9, "left": 9}, {"kind": "questions", "used": 7, "limit": 5, "left": 0}]}`,
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

					answer := call(t, operation.method, shared.url+address, bearer, body)
					for _, name := range []string{"X-Request-Id", "Date"} {
						answer.header.Del(name)
					}

					return answer
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

// checkPages shares things in every way, some in two, and reads the lists one by one.
func checkPages(t *testing.T, s *service, key *signer) {
	t.Helper()

	claims := key.claims("reader")
	claims["groups"] = []string{"readers", "more-readers"}
	reader := key.sign(claims)

	var want []string

	for _, owner := range []string{"pages-one", "pages-two"} {
		bearer := key.token(owner)

		// By whole namespace, by single datasets, by both; to the name, the account and two groups.
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

	// Signed in only now, so that all grants above are by name; one more is by account.
	share(t, s, key.token("pages-two"), "datasets/self/n5/c", "reader", "viewer")
	share(t, s, reader, "namespaces/self/mine", "@readers", "viewer")
	want = append(want, "pages-two/n5/c", "reader/mine/x", "reader/mine/y")

	for _, limit := range []int{1, 2, 3, 7, 100} {
		list := collect(t, s, reader, "/schema/datasets/all", limit)
		require.ElementsMatch(t, want, list, "limit %d", limit)
		require.Equal(t, []string{"reader/mine/x", "reader/mine/y"}, list[:2], "limit %d: one's own first", limit)

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

// makeDataset makes a namespace of the bearer's with the dataset orders, and returns the namespace's name.
func makeDataset(t *testing.T, s *service, bearer string) (namespace string) {
	t.Helper()

	namespace = "n-" + uuid.NewString()
	answer := call(t, http.MethodPost, s.url+"/ingest/new/"+namespace+"/orders", bearer, "")
	require.Equal(t, http.StatusCreated, answer.status, answer.body)

	return namespace
}

// share gives somebody a role. The path is namespaces/OWNER/NAMESPACE or datasets/OWNER/NAMESPACE/DATASET.
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

// restrictedToken makes an API token of the bearer that reaches only one target.
func restrictedToken(t *testing.T, s *service, bearer, target string) string {
	t.Helper()

	return value(t, call(t, http.MethodPost, s.url+"/user/token", bearer, `{"name": "made by a test", "accessRestrictedTo": [`+target+`]}`))
}

// A change that is made on one replica holds on the other with the next request.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()

	one := start(t)
	two := start(t, "QUERN_DATABASE_URL="+one.databaseURL, "QUERN_OIDC_ISSUER="+one.realm.issuer())
	key := one.newKey()

	// API tokens outlive the loop.
	owner := value(t, call(t, http.MethodPost, one.url+"/user/token", key.token("owner"), `{"name": "owner", "role": "owner"}`))
	guest := value(t, call(t, http.MethodPost, two.url+"/user/token", key.token("guest"), `{"name": "guest", "role": "owner"}`))

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
