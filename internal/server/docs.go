package server

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"quern.dev/quern/api"
)

//go:embed docs/page.html
var docsPage string

//go:embed docs/page.css
var docsStyle string

// docs serves the contract to programs and to people. The page is generated here from the document and runs no script,
// so its content security policy can be the strictest.
type docs struct {
	server *Server
	html   []byte
	policy string
}

// docsContent is what the page shows.
type docsContent struct {
	Info     *openapi3.Info
	Sections []docsSection
	Base     string // address of the API
	Style    template.CSS
}

func newDocs(s *Server) (*docs, error) {
	page, err := template.New("docs").Funcs(template.FuncMap{
		"prose": prose, "example": example, "fields": fields, "kind": kind,
	}).Parse(docsPage)
	if err != nil {
		return nil, err
	}

	var html bytes.Buffer
	if err := page.Execute(&html, docsContent{
		Info: s.contract.document.Info, Sections: sections(s.contract.document), Base: s.config.PublicURL + basePath,
		Style: template.CSS(docsStyle), //nolint:gosec // our own file
	}); err != nil {
		return nil, err
	}

	hash := sha256.Sum256([]byte(docsStyle))

	return &docs{
		server: s, html: html.Bytes(),
		policy: fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			base64.StdEncoding.EncodeToString(hash[:])),
	}, nil
}

// document serves the contract with the authorization address of the issuer. Until Quern has read that address from the
// issuer, the document contains the issuer's own URL instead.
func (d *docs) document(w http.ResponseWriter, _ *http.Request) error {
	address, known := d.server.config.Authenticator.AuthorizationURL()
	if !known {
		address = d.server.config.Issuer
	}

	document, err := api.Served()
	if err != nil {
		return err
	}

	setAuthorizationURL(document, address)

	document["servers"] = []openapi3.Server{{URL: d.server.config.PublicURL + basePath}}

	w.Header().Set("Cache-Control", "no-cache")
	writeJSON(w, http.StatusOK, document)

	return nil
}

func setAuthorizationURL(document map[string]any, address string) {
	object := document
	for _, key := range []string{"components", "securitySchemes", "openId", "flows", "implicit"} {
		object, _ = object[key].(map[string]any)
	}

	object["authorizationUrl"] = address
}

// resourceMetadataPath is the path that RFC 9728 prescribes.
const resourceMetadataPath = "/.well-known/oauth-protected-resource"

// protectedResource is the document that RFC 9728 defines.
type protectedResource struct {
	AuthorizationServers   []string `json:"authorization_servers"`
	BearerMethodsSupported []string `json:"bearer_methods_supported"`
	Resource               string   `json:"resource"`
	ResourceDocumentation  string   `json:"resource_documentation"`
	ScopesSupported        []string `json:"scopes_supported"`
}

// resourceMetadata returns where people sign in to use a resource, for programs without a token. The document is public, so pages
// of any origin may read it.
func (s *Server) resourceMetadata(resource string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		writeJSON(w, http.StatusOK, protectedResource{
			AuthorizationServers: []string{s.config.Issuer}, BearerMethodsSupported: []string{"header"}, Resource: resource,
			ResourceDocumentation: s.config.PublicURL + basePath + "/docs", ScopesSupported: []string{"openid"},
		})
	}
}

func (d *docs) page(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", d.policy)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(d.html) // the client may have disconnected

	return nil
}

type docsSection struct {
	Name, Description string
	Operations        []docsOperation
}

type docsOperation struct {
	*openapi3.Operation

	Method, Path string
	Parameters   openapi3.Parameters // of the path and of the operation
	Public       bool
	Body         *openapi3.MediaType
	Answers      []docsAnswer
}

type docsAnswer struct {
	Status, Description string
	Content             openapi3.Content
}

func sections(document *openapi3.T) []docsSection {
	var list []docsSection

	for _, tag := range document.Tags {
		section := docsSection{Name: tag.Name, Description: tag.Description}

		for path, item := range document.Paths.Map() {
			for method, operation := range item.Operations() {
				if slices.Contains(operation.Tags, tag.Name) {
					section.Operations = append(section.Operations, describeOperation(method, path, item, operation))
				}
			}
		}

		slices.SortFunc(section.Operations, func(a, b docsOperation) int {
			return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
		})

		list = append(list, section)
	}

	return list
}

func describeOperation(method, path string, item *openapi3.PathItem, operation *openapi3.Operation) docsOperation {
	op := docsOperation{
		Operation: operation, Method: method, Path: path, Parameters: slices.Concat(item.Parameters, operation.Parameters),
		Public: operation.Security != nil && len(*operation.Security) == 0,
	}

	if operation.RequestBody != nil {
		op.Body = operation.RequestBody.Value.Content["application/json"]
	}

	for status, response := range operation.Responses.Map() {
		op.Answers = append(op.Answers, docsAnswer{Status: status, Description: *response.Value.Description, Content: response.Value.Content})
	}

	slices.SortFunc(op.Answers, func(a, b docsAnswer) int { return strings.Compare(a.Status, b.Status) })

	return op
}

// prose converts the subset of Markdown that descriptions use to HTML: paragraphs, `code` and **bold**.
func prose(text string) template.HTML {
	html := template.HTMLEscapeString(strings.TrimSpace(text))
	html = codeMark.ReplaceAllString(html, "<code>$1</code>")
	html = weightMark.ReplaceAllString(html, "<strong>$1</strong>")
	html = "<p>" + strings.ReplaceAll(html, "\n\n", "</p><p>") + "</p>"

	return template.HTML(html) //nolint:gosec // escaped above
}

var (
	codeMark   = regexp.MustCompile("`([^`]+)`")
	weightMark = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// example returns the example of a body, or the first one by name of several.
func example(media *openapi3.MediaType) string {
	if media == nil {
		return ""
	}

	value := media.Example
	if names := slices.Sorted(maps.Keys(media.Examples)); value == nil && len(names) > 0 {
		value = media.Examples[names[0]].Value.Value
	}

	if value == nil {
		return ""
	}

	if text, ok := value.(string); ok {
		return text
	}

	pretty, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return ""
	}

	return string(pretty)
}

type docsField struct {
	Name, Kind, Description string
	Required                bool
}

// fields returns the properties of an object, required ones first.
func fields(media *openapi3.MediaType) []docsField {
	if media == nil || media.Schema == nil {
		return nil
	}

	schema := media.Schema.Value

	var list []docsField
	for name, property := range schema.Properties {
		list = append(list, docsField{
			Name: name, Kind: kind(property.Value), Description: property.Value.Description, Required: slices.Contains(schema.Required, name),
		})
	}

	slices.SortFunc(list, func(a, b docsField) int {
		if a.Required != b.Required {
			return map[bool]int{true: -1, false: 1}[a.Required]
		}

		return strings.Compare(a.Name, b.Name)
	})

	return list
}

func kind(schema *openapi3.Schema) string {
	var values []string
	for _, value := range schema.Enum {
		values = append(values, fmt.Sprint(value))
	}

	switch {
	case len(values) > 0:
		return strings.Join(values, " | ")
	case schema.Type.Is(openapi3.TypeArray):
		return "array of " + kind(schema.Items.Value)
	case schema.Format != "":
		return schema.Format
	default:
		return strings.Join(schema.Type.Slice(), " or ")
	}
}
