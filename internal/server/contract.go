package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"quern.dev/quern/api"
)

// contract is the OpenAPI document in the form in which requests are checked against it.
type contract struct {
	document   *openapi3.T
	operations map[string]*operation // by operationId
	ids        map[string]string     // operationId for each pattern of http.ServeMux
	fixed      map[string][]string   // methods of each path without a parameter
	paths      []string              // in the order of their names
}

// operation is what the contract specifies for one operation.
type operation struct {
	id        string
	summary   string
	pattern   string // of http.ServeMux
	public    bool
	ownerOnly bool
	operator  bool // only operators may call it
	params    []*openapi3.Parameter
	paged     bool             // the operation reads a list with a cursor
	body      *openapi3.Schema // nil if the operation has no JSON body to check
	tolerant  bool             // fields of the body and parameters of the query that the contract does not define are ignored
	bodyless  bool             // the body may be omitted
	rows      bool             // the body contains rows, which a sealed process parses
	statement bool             // the operation runs a statement
	lasting   bool             // the operation can take as long as a run
	rpc       bool             // another protocol defines the body and the headers
}

func loadContract() (*contract, error) {
	document, err := openapi3.NewLoader().LoadFromData(api.Document)
	if err != nil {
		return nil, fmt.Errorf("reading the contract: %w", err)
	}

	c := &contract{document: document, operations: map[string]*operation{}, ids: map[string]string{}, fixed: map[string][]string{}}

	for path, item := range document.Paths.Map() {
		c.paths = append(c.paths, path)

		for method, source := range item.Operations() {
			op := &operation{
				id:        source.OperationID,
				summary:   source.Summary,
				pattern:   method + " " + basePath + path,
				public:    source.Security != nil && len(*source.Security) == 0,
				ownerOnly: source.Extensions["x-quern-owner-only"] == true,
				operator:  source.Extensions["x-quern-operator"] == true,
				tolerant:  source.Extensions["x-quern-tolerant"] == true,
				lasting:   slices.Contains([]string{"ask", "streamRunEvents", "streamEvents", "callAgent", "callTool"}, source.OperationID),
				rpc:       slices.Contains([]string{"callAgent", "callTool"}, source.OperationID),
				statement: slices.Contains([]string{"runQuery", "listRows", "listStatementRows", "exportDataset", "exportStep", "exportSetAsideRows", "deleteRows", "putKey", "restoreSnapshot"}, source.OperationID),
			}

			for _, reference := range slices.Concat(item.Parameters, source.Parameters) {
				if !op.rpc || reference.Value.In == openapi3.ParameterInPath {
					op.params = append(op.params, reference.Value)
				}
			}

			op.paged = slices.ContainsFunc(op.params, func(p *openapi3.Parameter) bool { return p.Name == "cursor" })

			if source.RequestBody != nil && len(source.RequestBody.Value.Content) > 1 {
				op.rows = true
			} else if source.RequestBody != nil && !op.rpc {
				media := source.RequestBody.Value.Content["application/json"]
				if media == nil {
					return nil, fmt.Errorf("operation %s: only JSON bodies can be checked", op.id)
				}

				op.body, op.bodyless = media.Schema.Value, !source.RequestBody.Value.Required
			}

			if op.id == "" || c.operations[op.id] != nil {
				return nil, fmt.Errorf("%s: the operationId %q is empty or used twice", op.pattern, op.id)
			}

			c.operations[op.id], c.ids[op.pattern] = op, op.id

			if !strings.Contains(path, "{") {
				c.fixed[basePath+path] = append(c.fixed[basePath+path], method)
			}
		}
	}

	slices.Sort(c.paths)

	return c, nil
}

// refuses reports whether path is a path without a parameter that does not accept the method, and which methods it
// accepts. Such a path takes precedence over a path with a parameter in the same position, even for methods that only
// the other path has.
func (c *contract) refuses(path, method string) (allow string, refused bool) {
	methods, isFixed := c.fixed[path]
	if slices.Contains(methods, http.MethodGet) {
		methods = append(slices.Clone(methods), http.MethodHead)
	}

	slices.Sort(methods)

	return strings.Join(methods, ", "), isFixed && !slices.Contains(methods, method)
}

// validation returns the options for checking values against schemas: report all violations at once, and check formats.
func validation() []openapi3.SchemaValidationOption {
	return []openapi3.SchemaValidationOption{
		openapi3.MultiErrors(),
		openapi3.VisitAsRequest(),
		openapi3.EnableFormatValidation(),
		openapi3.WithStringFormatValidator("uuid", openapi3.NewCallbackValidator(checkUUID)),
		openapi3.WithStringFormatValidator("date-time", openapi3.NewCallbackValidator(checkTime)),
	}
}

const uuidLength = 36

// checkUUID accepts only the plain form; the parser also accepts braces and urn:uuid:.
func checkUUID(text string) error {
	if len(text) != uuidLength {
		return errors.New("is not a uuid")
	}

	return uuid.Validate(text)
}

// checkTime accepts the times that the decoder of the value accepts later, except a comma before the fraction.
func checkTime(text string) error {
	if strings.Contains(text, ",") {
		return errors.New("is not a time")
	}

	return new(time.Time).UnmarshalText([]byte(text))
}
