package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
)

// guard runs the checks that every operation has before its handler, in the order that the package comment describes, and
// reports the failure of a check or of the handler.
func (s *Server) guard(op *operation, next handlerFunc) http.Handler {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		c.operation = op.id

		if !op.lasting {
			ctx, cancel := context.WithTimeout(r.Context(), s.timeout(w, op))
			defer cancel()

			r = r.WithContext(ctx)
		}

		err := s.check(w, r, op, c)
		if err == nil {
			err = next(w, r)
		}

		if err != nil {
			s.report(w, r, err)
		}
	})

	if op.lasting { // streams of events must not wait in a buffer
		return handler
	}

	return s.compress(handler)
}

// timeout returns how long a request may take. A request that runs a statement may take longer than the write timeout
// of the listener, so timeout extends the write deadline of its connection.
func (s *Server) timeout(w http.ResponseWriter, op *operation) time.Duration {
	if !op.statement {
		return s.config.RequestTimeout
	}

	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * s.config.QueryTimeout)) // only connections of tests do not support it

	return s.config.QueryTimeout
}

func (s *Server) check(w http.ResponseWriter, r *http.Request, op *operation, c *call) error {
	if !op.public {
		who, err := s.authenticate(r, c)
		if err != nil {
			return err
		}

		c.who = who

		if err := s.limiter.allow(who.Account, w.Header()); err != nil {
			return err
		}
	}

	if err := checkParameters(r, op); err != nil {
		return err
	}

	if op.paged {
		c.list = listTag(r, op, c.who)
	}

	if op.ownerOnly && !isCaller(r.PathValue("username"), c.who) {
		return notOwner(r.PathValue("username"), c.who)
	}

	if op.operator {
		if err := c.who.RequireOperator(); err != nil {
			return err
		}
	}

	if op.rows {
		return s.checkRows(r)
	}

	if op.body == nil {
		return nil
	}

	body, err := s.readBody(w, r, op)
	c.requestHash = requestHash(r, body)

	return err
}

func (s *Server) authenticate(r *http.Request, c *call) (auth.Principal, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return auth.Principal{}, auth.Missing()
	}

	scheme, bearer, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(bearer) == "" {
		return auth.Principal{}, auth.Missing()
	}

	return s.config.Authenticator.Authenticate(r.Context(), strings.TrimSpace(bearer), auth.Origin{RequestID: c.id, Address: c.address})
}

func isCaller(username string, who auth.Principal) bool {
	return strings.EqualFold(username, auth.Self) || strings.EqualFold(username, who.Username)
}

// notOwner returns the fault for a path that names another owner, whether or not that user exists.
func notOwner(username string, who auth.Principal) error {
	return fault.New(fault.Forbidden, fmt.Sprintf("Only %s may do this, and you are %s. Write %s or self in the path for what you own.", username, who.Username, who.Username))
}

// checkParameters checks the path, query and header parameters. A path parameter that breaks its schema cannot name
// anything, so the fault is NotFound. All other violations are reported at once, with the parameters of the query that
// the contract does not define, which only tolerant operations accept.
func checkParameters(r *http.Request, op *operation) error {
	var subs []fault.Sub

	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		subs = append(subs, fault.Sub{Code: "query", Message: "is not well-formed: write % as %25 and ; as %3B"})
	}

	if !op.tolerant {
		subs = append(subs, unknownParameters(op, query)...)
	}

	for _, param := range op.params {
		var values []string

		switch param.In {
		case openapi3.ParameterInPath:
			if checkParameter(param.Schema.Value, r.PathValue(param.Name)) != nil {
				return fault.Absent()
			}

			continue
		case openapi3.ParameterInQuery:
			values = query[param.Name]
		case openapi3.ParameterInHeader:
			values = headerValues(r.Header, param.Name)
		}

		switch {
		case len(values) == 0 && param.Required:
			subs = append(subs, fault.Sub{Code: param.Name, Message: "is required" + requiredWords(param.Schema.Value)})
		case len(values) > 1:
			subs = append(subs, fault.Sub{Code: param.Name, Message: "is given more than once; give it once"})
		case len(values) == 1:
			if err := checkParameter(param.Schema.Value, values[0]); err != nil {
				subs = append(subs, fault.Sub{Code: param.Name, Message: err.Error() + origin([]string{param.Name})})
			}
		}
	}

	if len(subs) > 0 {
		return fault.InvalidFields(subs...)
	}

	return nil
}

// unknownParameters returns a fault for each parameter of the query that the operation does not have.
func unknownParameters(op *operation, query url.Values) []fault.Sub {
	var (
		known []string
		subs  []fault.Sub
	)

	for _, param := range op.params {
		if param.In == openapi3.ParameterInQuery {
			known = append(known, param.Name)
		}
	}

	slices.Sort(known)

	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(known, name) && len(subs) < maxUnknown {
			subs = append(subs, unknownParameter(op, name, known))
		}
	}

	return subs
}

// headerValues returns the values of a header. It joins several lines of If-Match, which is a list (RFC 9110, 5.3),
// into one line, also for the handlers.
func headerValues(header http.Header, name string) []string {
	if lines := header.Values(name); len(lines) > 1 && name == "If-Match" {
		header.Set(name, strings.Join(lines, ", "))
	}

	return header.Values(name)
}

// checkParameter parses text as the type of the schema and validates the value.
func checkParameter(schema *openapi3.Schema, text string) error {
	var value any

	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return errors.New("is not text")
	case schema.Type.Is(openapi3.TypeInteger):
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errors.New(integerWords(schema))
		}

		value = float64(n)
	case schema.Type.Is(openapi3.TypeBoolean):
		if text != "true" && text != "false" {
			return errors.New("must be true or false")
		}

		value = text == "true"
	default:
		value = text
	}

	if subs := violations(schema, value); len(subs) > 0 {
		return errors.New(subs[0].Message)
	}

	return nil
}

// maxUnknown limits how many unknown fields of a body, and unknown parameters, are reported.
const maxUnknown = 20

// readBody checks the body and replaces it by the same values without the fields that the contract does not define, which
// only tolerant operations accept: the decoder of the handlers ignores case, so it must not see unchecked fields.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, op *operation) ([]byte, error) {
	if err := checkContentType(r); err != nil {
		return nil, err
	}

	if r.ContentLength > s.config.MaxBody {
		return nil, tooLarge(s.config.MaxBody)
	}

	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.config.MaxBody))
	if err != nil {
		if size, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, tooLarge(size.Limit)
		}

		return nil, fault.Wrap(err, fault.BadRequest, "The body could not be read to its end.")
	}

	if op.bodyless && len(text) == 0 {
		text = []byte("{}")
	}

	value, err := parseJSON(text)
	if err != nil {
		message := "The body is not valid JSON: " + err.Error() + "."
		if fields := fieldNames(op.body); fields != "" {
			message += " Send an object with the fields: " + fields + "."
		}

		return nil, fault.Wrap(err, fault.BadRequest, message)
	}

	var unknown []fault.Sub

	value = prune(op.body, value, nil, func(path, known []string) {
		if !op.tolerant && len(unknown) < maxUnknown {
			unknown = append(unknown, unknownField(path, known))
		}
	})

	if subs := merge(unknown, violations(op.body, value)); len(subs) > 0 {
		return nil, fault.InvalidFields(subs...)
	}

	clean, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}

	r.Body = io.NopCloser(bytes.NewReader(clean))
	r.ContentLength = int64(len(clean))

	return clean, nil
}

func checkContentType(r *http.Request) error {
	text := r.Header.Get("Content-Type")
	if text == "" {
		return nil
	}

	media, params, err := mime.ParseMediaType(text)
	if charset := params["charset"]; err != nil || media != "application/json" || (charset != "" && !strings.EqualFold(charset, "utf-8")) {
		return fault.New(fault.UnsupportedMediaType, "The body must be application/json in UTF-8. Send it as JSON, with the header Content-Type: application/json.")
	}

	return nil
}

func tooLarge(limit int64) error {
	return fault.New(fault.PayloadTooLarge, fmt.Sprintf("The body may have %d bytes at most.", limit))
}

// requestHash distinguishes two requests with the same Idempotency-Key. The body is in canonical form, so white space
// and the order of keys do not matter.
func requestHash(r *http.Request, body []byte) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s", r.Method, r.URL.EscapedPath(), r.URL.Query().Encode(), body))
}
