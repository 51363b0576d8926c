package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// operation is one operation of the contract. The tests run for every operation, so they cover new ones as soon as these are
// served.
type operation struct {
	method, path string
	*openapi3.Operation
}

func (o operation) String() string { return o.method + " " + o.path }

func operations() []operation {
	var list []operation

	for path, item := range contract().Paths.Map() {
		for method, source := range item.Operations() {
			o := operation{method: method, path: path, Operation: source}
			o.Parameters = append(slices.Clone(item.Parameters), source.Parameters...)
			list = append(list, o)
		}
	}

	return list
}

// forOperators reports whether only operators may call the operation.
func (o operation) forOperators() bool { return o.Extensions["x-quern-operator"] == true }

func (o operation) public() bool { return o.Security != nil && len(*o.Security) == 0 }

// schema returns the schema of the body, or nil if the operation has no body or reads it by the rules of another protocol.
func (o operation) schema() *openapi3.Schema {
	if o.RequestBody == nil || o.String() == callAgent || o.String() == callTool {
		return nil
	}

	return o.RequestBody.Value.Content["application/json"].Schema.Value
}

// isRows reports whether the body contains rows, which may have other formats than JSON.
func (o operation) isRows() bool {
	return o.RequestBody != nil && o.RequestBody.Value.Content["text/csv"] != nil
}

// parameter returns the first parameter that fits, or nil.
func (o operation) parameter(fits func(*openapi3.Parameter) bool) *openapi3.Parameter {
	for _, reference := range o.Parameters {
		if fits(reference.Value) {
			return reference.Value
		}
	}

	return nil
}

func isID(p *openapi3.Parameter) bool {
	return p.In == openapi3.ParameterInPath && p.Schema.Value.Format == "uuid"
}

func isName(p *openapi3.Parameter) bool {
	return p.In == openapi3.ParameterInPath && p.Name != "username" && p.Schema.Value.Pattern != ""
}

// body returns the contract's example with only its required fields, or with all fields if none is required.
func (o operation) body(t *testing.T) map[string]any {
	t.Helper()

	example, ok := o.RequestBody.Value.Content["application/json"].Example.(map[string]any)
	require.True(t, ok, "%s has a body without an example", o)

	body := maps.Clone(example)
	if len(o.schema().Required) == 0 {
		return body
	}

	maps.DeleteFunc(body, func(key string, _ any) bool { return !slices.Contains(o.schema().Required, key) })

	if o.OperationID == "runQuery" {
		body["query"] = "SELECT 1" // a dataset in a statement that does not exist is 422, and not a state of the resources
	}

	return body
}

const (
	maxBody  = 64 << 10
	maxDepth = 10_000 // deeper than any parser accepts
)

func TestOrderOfChecks(t *testing.T) {
	t.Parallel()

	s := start(t, fmt.Sprintf("QUERN_MAX_BODY=%d", maxBody), fmt.Sprintf("QUERN_INGEST_MAX_BODY=%d", maxBody), "QUERN_UPLOAD_MAX_OPEN_SESSIONS=100000", scripted, withOperators)
	key := s.newKey()

	// The body of rows is read after the dataset was found, by a sealed process.
	made := call(t, http.MethodPost, s.url+"/ingest/new/x/x", key.token("reader"), "")
	require.Equal(t, http.StatusCreated, made.status, made.body)

	for _, operation := range operations() {
		t.Run(operation.String(), func(t *testing.T) {
			t.Parallel()

			token := key.token("checker")
			if operation.isRows() {
				token = key.token("reader")
			}

			if operation.forOperators() {
				token = key.operator("operator")
			}

			checkQuery(t, s, operation, token)

			if operation.public() {
				return
			}

			checkOrder(t, s, operation, token)

			if operation.parameter(isID) != nil {
				checkIDs(t, s, operation, token)
			}

			if operation.schema() != nil {
				checkBodies(t, s, operation, token)
			}
		})
	}
}

// draft is a request to which faults are added.
type draft struct {
	method, path, token, query string
	header                     []string
	body                       string
}

// faults returns the faults that the checks look for, in the order of the checks. put returns false if the fault is not possible
// in an operation.
func faults() []fault {
	return []fault{
		{check: 1, name: "unknown path", status: 404, put: func(_ operation, d *draft) bool {
			d.path += "/nothing/is/here"

			return true
		}},
		{check: 1, name: "unknown method", status: 405, put: func(_ operation, d *draft) bool {
			d.method = "LINK"

			return true
		}},
		{check: 2, name: "no token", status: 401, put: func(_ operation, d *draft) bool {
			d.token = ""

			return true
		}},
		{check: 2, name: "bad token", status: 401, put: func(_ operation, d *draft) bool {
			d.token = "garbage"

			return true
		}},
		{check: 3, name: "impossible id", status: 404, put: func(o operation, d *draft) bool {
			d.path = o.address("not-a-uuid")

			return o.parameter(isID) != nil
		}},
		{check: 3, name: "impossible name", status: 404, put: func(o operation, d *draft) bool {
			d.path = strings.Replace(d.path, "/x", "/-x", 1)

			return o.parameter(isName) != nil
		}},
		{check: 4, name: "bad query", status: 422, put: func(o operation, d *draft) bool {
			number := o.parameter(func(p *openapi3.Parameter) bool {
				return p.In == openapi3.ParameterInQuery && p.Schema.Value.Type.Is("integer")
			})
			if number == nil {
				return false
			}

			d.query = "?" + number.Name + "=many"

			return true
		}},
		{check: 4, name: "unknown parameter", status: 422, put: func(o operation, d *draft) bool {
			d.query = "?zzz=1"

			return !o.tolerant()
		}},
		{check: 4, name: "bad header", status: 422, put: func(o operation, d *draft) bool {
			bounded := o.parameter(func(p *openapi3.Parameter) bool {
				return p.In == openapi3.ParameterInHeader && p.Schema.Value.MaxLength != nil
			})
			if bounded == nil {
				return false
			}

			d.header = append(d.header, bounded.Name+": "+strings.Repeat("x", int(*bounded.Schema.Value.MaxLength)+1))

			return true
		}},
		{check: 5, name: "another's", status: 403, put: func(o operation, d *draft) bool {
			d.path = strings.Replace(d.path, "/self", "/another", 1)

			return o.Extensions["x-quern-owner-only"] == true
		}},
		{check: 6, name: "wrong content type", status: 415, put: func(o operation, d *draft) bool {
			d.header = append(d.header, "Content-Type: application/xml")

			return o.schema() != nil
		}},
		{check: 7, name: "too large", status: 413, put: func(o operation, d *draft) bool {
			d.body += strings.Repeat(" ", maxBody)

			return o.schema() != nil
		}},
		{check: 8, name: "not JSON", status: 400, put: func(o operation, d *draft) bool {
			d.body += "}"

			return o.schema() != nil
		}},
		{check: 9, name: "not valid", status: 422, put: func(o operation, d *draft) bool {
			d.body = `["not an object"]` + strings.TrimPrefix(d.body, validBody)

			return o.schema() != nil
		}},
	}
}

type fault struct {
	check  int
	name   string
	status int
	put    func(operation, *draft) bool
}

// validBody is a placeholder for the body of a draft, until it is sent.
const validBody = "VALID"

// checkOrder sends requests with two faults. The answer must be about the fault that is checked first.
func checkOrder(t *testing.T, s *service, operation operation, token string) {
	t.Helper()

	for _, first := range faults() {
		for _, second := range faults() {
			d := draft{method: operation.method, path: operation.address(uuid.NewString()), token: token}
			if operation.schema() != nil {
				d.body = validBody
			}

			// Put in the later fault first: the id of the path must be replaced before the path is extended.
			if first.check >= second.check || !second.put(operation, &d) || !first.put(operation, &d) {
				continue
			}

			if operation.schema() != nil {
				d.body = strings.Replace(d.body, validBody, encode(t, operation.body(t)), 1)
			}

			answer := call(t, d.method, s.url+d.path+d.query, d.token, d.body, d.header...)
			require.Equal(t, first.status, answer.status, "%s before %s: %s", first.name, second.name, answer.body)
		}
	}
}

func checkIDs(t *testing.T, s *service, operation operation, token string) {
	t.Helper()

	id := uuid.NewString()
	for _, bad := range []string{
		"x", "1", "%20", "-", strings.ReplaceAll(id, "-", ""), "%7B" + id + "%7D", "urn:uuid:" + id, id + "0", id[:35], id[:35] + "g", id + "%00", "%FF",
	} {
		answer := call(t, operation.method, s.url+operation.address(bad), token, "")
		require.Equal(t, http.StatusNotFound, answer.status, "%s: %s", bad, answer.body)
		requireAbsent(t, answer)
	}
}

// checkBodies sends invalid bodies of every kind, and some unusual bodies that are valid.
func checkBodies(t *testing.T, s *service, operation operation, token string) {
	t.Helper()

	address := s.url + operation.address(uuid.NewString())
	valid := operation.body(t)
	text := encode(t, valid)
	with := func(key string, value any) string {
		changed := maps.Clone(valid)
		changed[key] = value

		return encode(t, changed)
	}
	// and returns the object with more text before its end.
	and := func(more string) string {
		if len(valid) > 0 {
			more = "," + more
		}

		return strings.TrimSuffix(text, "}") + more + "}"
	}
	try := func(what string, status int, code, body string, header ...string) {
		t.Helper()
		requireFault(t, what, call(t, operation.method, address, token, body, header...), status, code)
	}

	// A valid body succeeds, or fails because of the state of the resources, which is checked last and changes from request to
	// request.
	accepted := []int{200, 201, 202, 204, 404, 409}
	if slices.Contains([]string{"putSemantics", "createVerifiedQuestion", "updateVerifiedQuestion", "createBenchmark", "importSemantics", "checkText", "createConnection", "updateConnection"}, operation.OperationID) { // what is valid depends on the resource or on other fields
		accepted = append(accepted, 422)
	}

	accept := func(what, body string, header ...string) {
		t.Helper()

		answer := call(t, operation.method, address, token, body, header...)
		require.Contains(t, accepted, answer.status, "%s: %s", what, answer.body)
	}
	accept("valid", text)

	// The operations of the interface specification ignore fields that they do not know, and rows have an envelope.
	tolerant := operation.isRows() || operation.tolerant()

	for what, body := range map[string]string{
		"white space": " \r\n\t", "cut": text[:len(text)-1], "text": "nonsense", "single quotes": "{'a': 1}",
		"bare key": "{a: 1}", "comment": text + "// x", "trailing comma": strings.TrimSuffix(text, "}") + ",}",
		"garbage after": text + "x", "value after": text + text, "bracket after": text + "]", "comma after": text + ",",
		"key twice":        and(`"k":1,"k":2`),
		"key twice, spelt": and(`"k":1,"\u006b":2`),
		"key twice, deep":  and(`"k":[{"a":{"b":1,"b":1}}]`),
		"not UTF-8":        and(`"k":"` + "\xff" + `"`), "not UTF-8 key": and(`"` + "\xc3\x28" + `":1`), "UTF-16": "\xff\xfe{\x00}\x00",
		"raw NUL": and(`"k":"` + "\x00" + `"`), "raw line break": and(`"k":"` + "\n" + `"`),
		"deep array": strings.Repeat("[", maxBody/2), "deep object": and(strings.Repeat(`"k":{`, maxDepth) + strings.Repeat("}", maxDepth)),
		"leading zero": and(`"k":01`), "not a number": and(`"k":NaN`), "bad escape": and(`"k":"\x"`),
	} {
		try(what, 400, "BAD_REQUEST", body)
	}

	if operation.RequestBody.Value.Required {
		try("empty", 400, "BAD_REQUEST", "")
	} else {
		accept("empty", "")
	}

	for _, body := range []string{"null", "[]", "[" + text + "]", `"text"`, "0", "true"} {
		try(body, 422, "VALIDATION_FAILED", body)
	}

	for name, property := range operation.schema().Properties {
		for _, value := range []any{"text", 1.5, true, []any{}, map[string]any{}} {
			if !hasType(property.Value, value) {
				require.Contains(t, requireFault(t, name, call(t, operation.method, address, token, with(name, value)), 422, "VALIDATION_FAILED"), name)
			}
		}

		switch _, given := valid[name]; {
		case slices.Contains(operation.schema().Required, name):
			if property.Value.Nullable {
				accept(name+" null", with(name, nil))
			} else {
				try(name+" null", 422, "VALIDATION_FAILED", with(name, nil))
			}

			missing := maps.Clone(valid)
			delete(missing, name)
			try(name+" missing", 422, "VALIDATION_FAILED", encode(t, missing))
			missing[strings.ToUpper(name)] = valid[name]
			try(name+" in capitals", 422, "VALIDATION_FAILED", encode(t, missing))
		case !given || len(valid) > 1 || !operation.RequestBody.Value.Required:
			accept(name+" null", with(name, nil))
		default:
			try(name+" null alone", 422, "VALIDATION_FAILED", with(name, nil))
		}

		if property.Value.Type.Is("string") {
			require.Contains(t, requireFault(t, name, call(t, operation.method, address, token, with(name, "a\x00b")), 422, "VALIDATION_FAILED"), name)
		}

		capitals := strings.ToUpper(name)
		if tolerant {
			accept(name+" in capitals beside", with(capitals, []any{1}))
		} else {
			refused := call(t, operation.method, address, token, with(capitals, []any{1}))
			require.Contains(t, requireFault(t, name, refused, 422, "VALIDATION_FAILED"), capitals)
			require.Contains(t, refused.body, `did you mean \"`+name+`\"?`)
		}
	}

	unknown := and(`"zzz":{"a":[1,null,{"b":"c"}]},"":0,"z.z":1e999,"nul":"\u0000"`)
	if tolerant {
		accept("unknown fields", unknown)
	} else {
		require.Subset(t, requireFault(t, "unknown fields", call(t, operation.method, address, token, unknown), 422, "VALIDATION_FAILED"), []string{"", "nul", "z.z", "zzz"})
	}

	accept("white space around", " \r\n\t"+text+" \r\n\t")
	accept("no content type", text, "Content-Type: ")
	accept("charset", text, "Content-Type: application/json; charset=UTF-8")
	accept("capitals", text, "Content-Type: Application/JSON")

	for _, media := range []string{
		"text/plain", "application/xml", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp",
		"application/json; charset=latin1", "application/json; charset=utf-16", "application/json, text/plain", "json", "*/*", ";",
	} {
		try(media, 415, "UNSUPPORTED_MEDIA_TYPE", text, "Content-Type: "+media)
	}

	fitting := text + strings.Repeat(" ", maxBody-len(text))
	accept("the largest", fitting)
	try("too large", 413, "PAYLOAD_TOO_LARGE", fitting+" ")

	for extra, statuses := range map[string][]int{"": accepted, " ": {413}} {
		request := newRequest(t, operation.method, address, token, text)
		request.Body, request.ContentLength = io.NopCloser(strings.NewReader(fitting+extra)), -1
		require.Contains(t, statuses, send(t, request).status, "chunked")
	}
}

// requireFault checks the status and the code of an error, and returns the fields that it names.
func requireFault(t *testing.T, what string, answer *answer, status int, code string) (fields []string) {
	t.Helper()
	require.Equal(t, status, answer.status, "%s: %s", what, answer.body)

	var body struct {
		ErrorCode string                  `json:"error_code"`
		SubErrors []struct{ Code string } `json:"sub_errors"`
	}
	answer.json(t, &body)
	require.Equal(t, code, body.ErrorCode, what)

	for _, sub := range body.SubErrors {
		fields = append(fields, sub.Code)
	}

	return fields
}

func hasType(schema *openapi3.Schema, value any) bool {
	if len(schema.AllOf) == 1 { // a reference that may be null
		return hasType(schema.AllOf[0].Value, value)
	}

	switch value.(type) {
	case string:
		return schema.Type.Is("string")
	case float64:
		return schema.Type.Is("number")
	case bool:
		return schema.Type.Is("boolean")
	case []any:
		return schema.Type.Is("array") || schema.Type == nil && schema.Items != nil
	default:
		return schema.Type.Is("object") || schema.Type == nil && schema.AdditionalProperties.Schema != nil
	}
}

func encode(t *testing.T, value any) string {
	t.Helper()

	text, err := json.Marshal(value)
	require.NoError(t, err)

	return string(text)
}
