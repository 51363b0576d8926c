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

// contract is the served document, made ready for checking requests.
type contract struct {
	document   *openapi3.T
	operations map[string]*operation // by pattern of http.ServeMux
	fixed      map[string][]string   // methods of the paths without a parameter
}

// operation is what the document says of one operation.
type operation struct {
	id        string
	public    bool
	ownerOnly bool
	params    []*openapi3.Parameter
	body      *openapi3.Schema // nil if it takes none
	bodyless  bool             // the body may be left out
	rows      bool             // the body is rows, which a sealed child reads
	statement bool             // it runs one
	lasting   bool             // it takes as long as a run
	rpc       bool             // its body and headers are another protocol's
}

func loadContract() (*contract, error) {
	document, err := openapi3.NewLoader().LoadFromData(api.Document)
	if err != nil {
		return nil, fmt.Errorf("reading the contract: %w", err)
	}

	c := &contract{document: document, operations: map[string]*operation{}, fixed: map[string][]string{}}

	for path, item := range document.Paths.Map() {
		for method, source := range item.Operations() {
			op := &operation{
				id:        source.OperationID,
				public:    source.Security != nil && len(*source.Security) == 0,
				ownerOnly: source.Extensions["x-quern-owner-only"] == true,
				lasting:   slices.Contains([]string{"ask", "streamRunEvents", "callAgent"}, source.OperationID),
				rpc:       source.OperationID == "callAgent",
				statement: slices.Contains([]string{"runQuery", "listRows", "exportDataset", "exportStep"}, source.OperationID),
			}

			for _, reference := range slices.Concat(item.Parameters, source.Parameters) {
				if !op.rpc || reference.Value.In == openapi3.ParameterInPath {
					op.params = append(op.params, reference.Value)
				}
			}

			if source.RequestBody != nil && len(source.RequestBody.Value.Content) > 1 {
				op.rows = true
			} else if source.RequestBody != nil && !op.rpc {
				media := source.RequestBody.Value.Content["application/json"]
				if media == nil {
					return nil, fmt.Errorf("operation %s: only JSON bodies can be checked", op.id)
				}

				op.body, op.bodyless = media.Schema.Value, !source.RequestBody.Value.Required
			}

			c.operations[method+" "+basePath+path] = op

			if !strings.Contains(path, "{") {
				c.fixed[basePath+path] = append(c.fixed[basePath+path], method)
			}
		}
	}

	return c, nil
}

// refuses tells whether a path without a parameter does not take the method, and which ones it takes. Such a
// path comes before one with a parameter in its place, also for methods that only the other one has.
func (c *contract) refuses(path, method string) (allow string, refused bool) {
	methods, isFixed := c.fixed[path]
	if slices.Contains(methods, http.MethodGet) {
		methods = append(slices.Clone(methods), http.MethodHead)
	}

	slices.Sort(methods)

	return strings.Join(methods, ", "), isFixed && !slices.Contains(methods, method)
}

// validation is how values are held against schemas: all faults at once, and formats taken seriously.
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

// checkUUID takes the plain form alone; the parser would also take braces and urn:uuid:.
func checkUUID(text string) error {
	if len(text) != uuidLength {
		return errors.New("is not a uuid")
	}

	return uuid.Validate(text)
}

// checkTime is as strict as the decoder that reads the value afterwards, and does not take its comma.
func checkTime(text string) error {
	if strings.Contains(text, ",") {
		return errors.New("is not a time")
	}

	return new(time.Time).UnmarshalText([]byte(text))
}
