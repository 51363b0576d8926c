package a2a

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
)

// request is a JSON-RPC request.
type request struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

// nobody is the id in the response to a request whose id cannot be read.
var nobody = json.RawMessage("null") //nolint:gochecknoglobals // a constant

// read reads the request. If the id could be read, it is set even when read returns an error.
func (a *Agents) read(w http.ResponseWriter, r *http.Request) (request, error) {
	none := request{ID: nobody}

	if !isJSON(r.Header.Get("Content-Type")) {
		return none, protocol.NewError(protocol.ErrUnsupportedContentType, "The request must be application/json in UTF-8.")
	}

	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, a.MaxBody))
	if _, isLarge := errors.AsType[*http.MaxBytesError](err); isLarge {
		return none, tooLarge()
	}

	if err != nil || !utf8.Valid(text) || !json.Valid(text) {
		return none, protocol.NewError(protocol.ErrParseError, "The request is not JSON in UTF-8.")
	}

	if text = bytes.TrimLeft(text, " \t\r\n"); text[0] == '[' {
		return none, protocol.NewError(protocol.ErrInvalidRequest, "Batches are not supported. Send one request at a time.")
	}

	return parse(text)
}

func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}

	media, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]

	return err == nil && media == jsonType && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

func parse(text []byte) (request, error) {
	var members map[string]json.RawMessage // a map, because the names of members are case-sensitive

	refuse := func(id json.RawMessage, why string) (request, error) {
		return request{ID: id}, protocol.NewError(protocol.ErrInvalidRequest, "The request is not valid JSON-RPC 2.0: "+why+".")
	}

	if json.Unmarshal(text, &members) != nil {
		return refuse(nobody, "it is not an object")
	}

	id := members["id"]
	if !isID(id) {
		return refuse(nobody, "its id must be a string or a number")
	}

	var version, name string
	if json.Unmarshal(members["jsonrpc"], &version) != nil || version != "2.0" {
		return refuse(id, `jsonrpc must be "2.0"`)
	}

	if json.Unmarshal(members["method"], &name) != nil || name == "" {
		return refuse(id, "method must be the name of a method")
	}

	return request{ID: id, Method: name, Params: members["params"]}, nil
}

func isID(id json.RawMessage) bool {
	return len(id) > 0 && strings.IndexByte(`"-0123456789`, id[0]) >= 0
}

// decode decodes parameters. Names may also be written with underscores, as in the definition of the protocol. Names inside
// of metadata and data belong to the client and are not changed. Unknown members are ignored.
func decode(params json.RawMessage, into any) error {
	if len(params) == 0 || string(params) == "null" {
		params = json.RawMessage("{}")
	}

	var tree map[string]any

	numbers := json.NewDecoder(bytes.NewReader(params))
	numbers.UseNumber()

	if numbers.Decode(&tree) != nil {
		return invalidField("params", "must be an object")
	}

	clean, err := walk("params", tree, true)
	if err != nil {
		return err
	}

	text, err := json.Marshal(clean)
	if err != nil {
		return err
	}

	err = json.Unmarshal(text, into)
	if misfit, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && misfit.Field != "" {
		return invalidField(misfit.Field, "has the wrong type")
	}

	if err != nil {
		return invalidField("params", "do not have the form that the protocol defines; a part has exactly one of text, data, raw and url")
	}

	return nil
}

// walk renames members to camel case, and refuses the character zero, which the database cannot store.
func walk(at string, value any, rename bool) (any, error) {
	switch value := value.(type) {
	case string:
		if strings.ContainsRune(value, 0) {
			return nil, invalidField(at, "must not contain the NUL character")
		}

		return value, nil
	case []any:
		for i := range value {
			var err error
			if value[i], err = walk(at, value[i], rename); err != nil {
				return nil, err
			}
		}

		return value, nil
	case map[string]any:
		return walkObject(at, value, rename)
	default:
		return value, nil
	}
}

func walkObject(at string, object map[string]any, rename bool) (any, error) {
	clean := make(map[string]any, len(object))

	for name, member := range object {
		if rename {
			name = camel(name)
		}

		if _, twice := clean[name]; twice {
			return nil, invalidField(at, "has "+name+" twice")
		}

		member, err := walk(at+"."+name, member, rename && name != "metadata" && name != "data")
		if err != nil {
			return nil, err
		}

		clean[name] = member
	}

	return clean, nil
}

// camel returns a name in camel case: historyLength for history_length.
func camel(name string) string {
	parts := strings.Split(name, "_")
	for i, part := range parts[1:] {
		if part != "" {
			parts[i+1] = strings.ToUpper(part[:1]) + part[1:]
		}
	}

	return strings.Join(parts, "")
}
