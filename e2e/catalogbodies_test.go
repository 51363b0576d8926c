package e2e

import "strings"

// namespaceBody is a namespace as a caller with that role sees it. Without a role, only some datasets in it are shared with the
// caller.
func namespaceBody(owner, name, exposure, role string) string {
	if role != "" {
		role = `, "role": "` + role + `"`
	}

	return `{"username": "` + owner + `", "name": "` + name + `", "exposure": "` + exposure + `", "createdAt": "<at now>"` + role + `}`
}

// datasetBody is the description of a dataset without rows. path is OWNER/NAMESPACE/NAME.
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

// plainItem is a dataset in a list without a description and with the default exposure.
func plainItem(path, role string) string { return itemBody(path, role, "schema", "") }

// matched is an item of a search, with where its words were found.
func matched(item string, in ...string) string {
	return strings.TrimSuffix(item, "}") + `, "matchedIn": ["` + strings.Join(in, `", "`) + `"]}`
}

func page(items ...string) string { return `{"data": [` + strings.Join(items, ", ") + `]}` }

// firstPage is a page that another page follows. It binds next to the cursor of that page.
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

// viaBody is a grant on the namespace in the list of a dataset.
func viaBody(username, role string) string {
	return `{"username": "` + username + `", "role": "` + role + `", "via": "namespace"}`
}

func shares(items ...string) string { return "[" + strings.Join(items, ", ") + "]" }

func plainFault(code, message string) string {
	return `{"error_code": "` + code + `", "message": "` + message + `", "error_message": ""}`
}

func lacksRole(need, have string) string {
	return plainFault("FORBIDDEN", "This needs the role "+need+"; you have "+have+".")
}

// auditBody is an audit entry of a request without an API token.
func auditBody(username, action, target, detail string) string {
	return `{"id": "<entry uuid>", "at": "<at now>", "username": "` + username + `", "action": "` + action + `", "target": ` + target + `, "detail": "` + detail + `",
		"outcome": "done", "address": "127.0.0.1", "requestId": "<request text>"}`
}

const (
	ownerOnly     = `{"error_code": "FORBIDDEN", "message": "<who owner>", "error_message": ""}`
	changedSince  = `{"error_code": "PRECONDITION_FAILED", "message": "The definition has changed. Read it again, then repeat the change.", "error_message": ""}`
	noSession     = `{"error_code": "NOT_FOUND", "message": "You have no upload session with this id, or it lacks one of the files. POST /file-upload/prepare begins a session and returns its ids; GET /file-upload lists yours.", "error_message": ""}`
	namespaceHere = `{"error_code": "CONFLICT", "message": "A namespace with this name already exists. Choose another name, or use the existing one.", "error_message": ""}`
	datasetHere   = `{"error_code": "CONFLICT", "message": "A dataset with this name already exists. Choose another name, or add rows to the existing one.", "error_message": ""}`
	badName       = "must have 1 to 128 letters, digits, dots, underscores or hyphens, and begin with a letter or digit"
	badPathName   = "must have 1 to 128 letters, digits, dots, underscores or hyphens, and begin with a letter or digit"
	badExposure   = "must be one of: schema, values, rows (what external models see: names and types of columns, also values, or whole rows)"
	badShareRole  = "must be one of: viewer, editor"
	oneself       = "is your own username; give that of another person, because an owner needs no share"
	nobodysName   = "is not a valid username"
)

// noShare is the answer to the revocation of a share that does not exist.
func noShare(grantee, address string) string {
	return plainFault("NOT_FOUND", `\"`+grantee+`\" has no share here that could be revoked. GET `+address+` lists the shares.`)
}

// unseenTarget is the message for a namespace that a token cannot be restricted to.
func unseenTarget(username, namespace string) string {
	return `There is no namespace \"` + username + "/" + namespace + `\" that you own or that is shared with you as a whole. GET /schema/` + username + `/namespaces lists namespaces.`
}

// restricted is the response to a new token that is limited to targets. x is its name and is bound as in created.
func restricted(x, role string, targets ...string) string {
	return `{"id": "<` + x + ` uuid>", "name": "` + x + `", "role": "` + role + `", "accessRestrictedTo": [` + strings.Join(targets, ", ") + `],
		"createdAt": "<at now>", "expiresAt": "<at now+2160h>", "token": "<` + x + `-token token>"}`
}

// target is one target of a restricted token. Without a dataset it is a whole namespace.
func target(username, namespace, dataset string) string {
	if dataset != "" {
		dataset = `, "dataset": "` + dataset + `"`
	}

	return `{"username": "` + username + `", "namespace": "` + namespace + `"` + dataset + `}`
}
