package query

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lexicon"
)

// MaxParameters is the largest number of parameters of a statement.
const MaxParameters = 1000

// Parameters are the values of the parameters of a statement. They are bound to the statement in the sealed process and
// are never part of its text.
type Parameters struct {
	Named  bool // by name; otherwise in the order of their numbers
	Values []Value
}

// Value is the value of a parameter.
type Value struct {
	Name  string // only if the parameters have names
	Type  string // type of a column; empty means the type that the value has in SQL
	Value any    // string, json.Number, bool or nil for NULL; anything else is refused

	Problem string // what is wrong with the form of the value
}

// field returns the name of the field of a request for the value with this index.
func (p Parameters) field(index int) string {
	if p.Named {
		return parameterField(p.Values[index].Name)
	}

	return parameterField(strconv.Itoa(index + 1))
}

const parametersField = "parameters"

// parameterField returns the name of the field for a parameter with this name or number.
func parameterField(name string) string {
	if number, err := strconv.Atoi(name); err == nil {
		name = strconv.Itoa(number - 1)
	}

	return parametersField + "." + name
}

var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

const nameRule = "The name of a parameter has ASCII letters, digits and underscores, does not begin with a digit, and has at most 63 characters."

// parse checks each value against its type.
//
// Faults: ValidationFailed with one entry for each value that does not fit, which never contains the value.
func (p Parameters) parse() (list []engine.Parameter, err error) {
	var subs []fault.Sub

	seen := map[string]bool{}

	for i, given := range p.Values {
		parsed, problem := given.parse()
		parsed.Name = strconv.Itoa(i + 1)

		if p.Named {
			parsed.Name = given.Name

			switch {
			case !parameterName.MatchString(given.Name): // the name is not repeated, because the names of fields are logged
				return nil, fault.Invalid(parametersField, nameRule)
			case seen[folded(given.Name)]:
				problem = "is given twice. Names are compared without case."
			}

			seen[folded(given.Name)] = true
		}

		if problem != "" {
			subs = append(subs, fault.Sub{Code: p.field(i), Message: problem})
		}

		list = append(list, parsed)
	}

	return list, invalidParameters(subs)
}

// maxFaults limits how many faults of parameters are reported.
const maxFaults = 20

func invalidParameters(subs []fault.Sub) error {
	if len(subs) == 0 {
		return nil
	}

	return fault.InvalidFields(subs[:min(len(subs), maxFaults)]...)
}

// parameter checks a parameter in the tree.
func (w *walker) parameter(o object) error {
	w.met.parameters++

	name, _ := o["identifier"].(string)

	number, err := strconv.Atoi(name)
	isNumber := err == nil && strconv.Itoa(number) == name

	switch {
	case o["type"] != "VALUE_PARAMETER":
		return unsupported(o, "This kind of parameter")
	case isNumber && (number < 1 || number > MaxParameters):
		return invalid(position(o), fmt.Sprintf("A statement has at most %d parameters, $1 to $%d.", MaxParameters, MaxParameters))
	case !isNumber && !parameterName.MatchString(name):
		return invalid(position(o), nameRule)
	}

	if w.seen == nil {
		w.seen = map[string]bool{}
	}

	if !w.seen[folded(name)] {
		w.parameters, w.seen[folded(name)] = append(w.parameters, name), true
	}

	if len(w.parameters) > MaxParameters {
		return invalid(position(o), fmt.Sprintf("The statement has more than %d parameters.", MaxParameters))
	}

	return nil
}

// declares reports whether a statement of a tree lists exactly the parameters that were found in it.
func declares(one object, found []string) bool {
	var declared []string

	for _, entry := range items(one["named_param_map"]) {
		name, _ := entry["key"].(string)
		declared = append(declared, folded(name))
	}

	var met []string
	for _, name := range found {
		met = append(met, folded(name))
	}

	slices.Sort(declared)
	slices.Sort(met)

	return slices.Equal(declared, met)
}

// bind checks that every parameter of the statement has a value and that every value has a parameter.
//
// Faults: ValidationFailed with one entry for each parameter; QueryInvalid for a statement of a run.
func (s *statement) bind(want Statement, values []engine.Parameter) error {
	given := want.Parameters

	switch {
	case len(s.parameters) > 0 && want.OfRun && !want.Lasting:
		return invalid(-1, "The statement has parameters. Write the values into it.")
	case len(s.parameters) == 0 && len(values) > 0:
		return fault.Invalid(parametersField, "The statement has no parameters. Write $1 or $name where a value belongs, or leave parameters out.")
	case len(values) > 0 && given.Named && !s.named():
		return fault.Invalid(parametersField, "must be a list, because the parameters of the statement have no names: the first value is for $1.")
	case len(values) > 0 && !given.Named && s.named():
		return fault.Invalid(parametersField, fmt.Sprintf(`must be an object, because the parameters of the statement have names: {%q: "value"}.`, s.parameters[0]))
	}

	s.values = map[string]engine.Parameter{}
	missing := map[string]string{} // by folded name

	for _, name := range s.parameters {
		missing[folded(name)] = name
	}

	var subs []fault.Sub

	for i, value := range values {
		key := folded(value.Name)
		if _, isThere := missing[key]; !isThere {
			subs = append(subs, fault.Sub{Code: given.field(i), Message: s.surplus(value.Name)})
		}

		delete(missing, key)

		s.values[key] = value
	}

	for _, key := range slices.SortedFunc(maps.Keys(missing), byNumber) {
		subs = append(subs, fault.Sub{Code: parameterField(missing[key]), Message: fmt.Sprintf("is missing: the statement has the parameter $%s. Send the values in parameters: %s.", missing[key], s.form())})
	}

	return invalidParameters(subs)
}

// form shows how the values of the parameters are sent.
func (s *statement) form() string {
	if s.named() {
		return fmt.Sprintf(`{%q: "value"}`, s.parameters[0])
	}

	return `["value of $1"]`
}

// named reports whether the parameters of the statement have names. They all have, or none has.
func (s *statement) named() bool {
	_, err := strconv.Atoi(s.parameters[0])

	return err != nil
}

// byNumber sorts $2 before $10.
func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

// surplus returns the message for a value without a parameter.
func (s *statement) surplus(name string) string {
	message := fmt.Sprintf("has no place: the statement has no parameter $%s.", name)
	if near := lexicon.Nearest(name, s.parameters); s.named() && len(near) > 0 {
		message += fmt.Sprintf(" It has $%s.", near[0])
	}

	return message
}

// valued returns a part of the tree with the values of parameters as constants. It is only for decisions about the
// statement; the statement itself runs with its parameters.
func (s *statement) valued(o object) object {
	if len(s.values) == 0 || o == nil {
		return o
	}

	found, _ := s.withValues(o).(object)

	return found
}

func (s *statement) withValues(value any) any {
	switch value := value.(type) {
	case []any:
		changed := make([]any, len(value))
		for i, inner := range value {
			changed[i] = s.withValues(inner)
		}

		return changed
	case object:
		if name, _ := value["identifier"].(string); value["class"] == "PARAMETER" {
			return constantNode(s.values[folded(name)])
		}

		changed := object{}
		for key, inner := range value {
			changed[key] = s.withValues(inner)
		}

		return changed
	default:
		return value
	}
}

// constantNode returns the node of a constant as DuckDB writes it. NULL and types without such a constant give an empty
// node.
func constantNode(p engine.Parameter) object {
	if p.Value == nil {
		return object{}
	}

	node := func(kind string, value, info any) object {
		return object{"class": "CONSTANT", "value": object{"type": object{"id": kind, "type_info": info}, "is_null": false, "value": value}}
	}

	switch _, scale, isDecimal := decimalOf(p.Type); {
	case isDecimal:
		return node("DECIMAL", json.Number(strings.Replace(*p.Value, ".", "", 1)), object{"scale": json.Number(strconv.Itoa(scale))})
	case p.Type == engine.Integer || p.Type == engine.Bigint:
		return node("BIGINT", json.Number(*p.Value), nil)
	case p.Type == engine.Varchar:
		return node("VARCHAR", *p.Value, nil)
	case p.Type == engine.Date || p.Type == engine.Timestamp:
		return object{"class": "CAST", "cast_type": object{"id": strings.ToUpper(p.Type)}, "child": node("VARCHAR", *p.Value, nil)}
	default:
		return object{}
	}
}

var decimalType = regexp.MustCompile(`^decimal\(([0-9]{1,2}), ?([0-9]{1,2})\)$`)

const maxDigits = 38

func decimalOf(kind string) (precision, scale int, ok bool) {
	found := decimalType.FindStringSubmatch(kind)
	if found == nil {
		return 0, 0, false
	}

	precision, _ = strconv.Atoi(found[1])
	scale, _ = strconv.Atoi(found[2])

	return precision, scale, precision >= 1 && precision <= maxDigits && scale <= precision
}

// pow10 returns 10 to the power of n.
func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
