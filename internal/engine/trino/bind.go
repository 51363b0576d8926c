package trino

import (
	"fmt"
	"strings"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
)

// bound returns the text that is sent. Trino's protocol has no values beside the text: a prepared statement gets them as
// expressions after USING, outside of the text of the statement. Each is one literal that this package writes.
func (s Statement) bound() (string, error) {
	if len(s.Parameters) == 0 {
		return s.Text, nil
	}

	values := make([]string, len(s.Parameters))

	for i, p := range s.Parameters {
		var err error
		if values[i], err = literal(p); err != nil {
			return "", err
		}
	}

	return "EXECUTE IMMEDIATE " + quoted(s.Text) + " USING " + strings.Join(values, ", "), nil
}

// literal returns the SQL of a value.
func literal(p engine.Parameter) (string, error) {
	if p.Value == nil {
		return "NULL", nil
	}

	base, _, _ := strings.Cut(p.Type, "(")

	switch base {
	case engine.Varchar:
		return quoted(*p.Value), nil
	case engine.Timestamp:
		return "TIMESTAMP " + quoted(strings.Replace(*p.Value, "T", " ", 1)), nil
	case engine.Decimal:
		return fmt.Sprintf("CAST(%s AS %s)", quoted(*p.Value), p.Type), nil
	case engine.Boolean, engine.Integer, engine.Bigint, engine.Double, engine.Date, engine.Time:
		return strings.ToUpper(base) + " " + quoted(*p.Value), nil
	default:
		return "", fault.New(fault.Internal, "The statement could not be run.")
	}
}

// quoted returns a text as a literal. In Trino, only a quote ends it: a backslash has no meaning.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
