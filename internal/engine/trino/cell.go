package trino

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"quern.dev/quern/internal/engine"
)

// signature is the type of a column or of a part of it.
type signature struct {
	Raw       string `json:"rawType"`
	Arguments []struct {
		Kind  string          `json:"kind"`
		Value json.RawMessage `json:"value"`
	} `json:"arguments"`
}

// cell is how the values of a type become cells: the same JSON that the sealed processes write for the same value.
type cell struct {
	name   string
	append func(line []byte, value json.RawMessage) ([]byte, error)
}

var errCell = errors.New("an unexpected value")

// cellOf returns the type for a type of Trino.
func cellOf(s signature) cell {
	c := plainCell(s)
	c.append = nullable(c.append)

	return c
}

// cellAs returns the type for a column that must have the given type of the sealed processes.
func cellAs(want string, s signature) (cell, error) {
	c := cellOf(s)

	switch {
	case want == "hugeint" && s.Raw == "decimal":
		c.append = nullable(huge)
	case want == engine.JSON && s.Raw == "varchar":
		c.append = nullable(embedded)
	case want != c.name && s.Raw != "unknown":
		return c, broken("a column of type " + c.name + " instead of " + want)
	}

	c.name = want

	return c, nil
}

// huge writes a whole number of any size, which Trino sends as a text.
func huge(line []byte, value json.RawMessage) ([]byte, error) {
	var shown string
	if err := json.Unmarshal(value, &shown); err != nil {
		return nil, err
	}

	n, ok := new(big.Int).SetString(shown, 10)
	if !ok {
		return nil, errCell
	}

	if n.CmpAbs(big.NewInt(safeInteger)) > 0 {
		return append(append(append(line, '"'), shown...), '"'), nil
	}

	return append(line, shown...), nil
}

func nullable(inner func(line []byte, value json.RawMessage) ([]byte, error)) func(line []byte, value json.RawMessage) ([]byte, error) {
	return func(line []byte, value json.RawMessage) ([]byte, error) {
		if isNull(value) {
			return append(line, "null"...), nil
		}

		return inner(line, value)
	}
}

func plainCell(s signature) cell {
	switch s.Raw {
	case "boolean", "tinyint", "smallint", "integer":
		return cell{s.Raw, number}
	case "bigint":
		return cell{s.Raw, integer}
	case "real":
		return cell{"float", double(32)}
	case "double":
		return cell{s.Raw, double(64)}
	case "decimal":
		return decimalCell(s)
	case "varchar", "char":
		return cell{engine.Varchar, text}
	case "json":
		return cell{engine.JSON, embedded}
	case "date", "uuid":
		return cell{s.Raw, text}
	case "time":
		return cell{s.Raw, moment}
	case "timestamp":
		return cell{s.Raw, moment}
	case "timestamp with time zone":
		return cell{s.Raw, zoned}
	case "varbinary":
		return cell{"blob", text} // Trino sends base64
	case "unknown":
		return cell{"null", text}
	case "array":
		return arrayCell(s)
	case "map":
		return mapCell(s)
	case "row":
		return rowCell(s)
	case "interval day to second", "interval year to month":
		return cell{"interval", text}
	default:
		return cell{"other", text}
	}
}

func number(line []byte, value json.RawMessage) ([]byte, error) {
	if value[0] == '"' || value[0] == '[' || value[0] == '{' {
		return nil, errCell
	}

	return append(line, value...), nil
}

const safeInteger = 1<<53 - 1

// integer writes a number, or a text if a double cannot represent it.
func integer(line []byte, value json.RawMessage) ([]byte, error) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return nil, err
	}

	if n > safeInteger || n < -safeInteger {
		return append(append(append(line, '"'), value...), '"'), nil
	}

	return append(line, value...), nil
}

// double writes a number as the engine in the sealed processes does: 1.0, 1e21.
func double(bits int) func([]byte, json.RawMessage) ([]byte, error) {
	return func(line []byte, value json.RawMessage) ([]byte, error) {
		unquoted := strings.Trim(string(value), `"`)

		f, err := strconv.ParseFloat(unquoted, bits)
		if err != nil {
			return nil, err
		}

		switch {
		case math.IsNaN(f):
			return append(line, `"NaN"`...), nil
		case math.IsInf(f, 1):
			return append(line, `"Infinity"`...), nil
		case math.IsInf(f, -1):
			return append(line, `"-Infinity"`...), nil
		}

		format := byte('f')
		if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
			format = 'e'
		}

		shown := strings.NewReplacer("e+", "e", "e-0", "e-").Replace(strconv.FormatFloat(f, format, -1, bits))
		if !strings.ContainsAny(shown, ".e") {
			shown += ".0"
		}

		return append(line, shown...), nil
	}
}

// decimalCell writes decimals: as numbers if a double represents all their digits, else as texts.
func decimalCell(s signature) cell {
	const exactDigits = 15

	precision, scale := argument(s, 0), argument(s, 1)

	return cell{fmt.Sprintf("decimal(%d,%d)", precision, scale), func(line []byte, value json.RawMessage) ([]byte, error) {
		var shown string
		if err := json.Unmarshal(value, &shown); err != nil {
			return nil, err
		}

		whole, fraction, _ := strings.Cut(shown, ".")
		digits := strings.TrimLeft(strings.TrimLeft(whole, "-")+fraction, "0")

		if _, err := strconv.ParseFloat(shown, 64); err != nil {
			return nil, errCell
		}

		if precision > exactDigits && len(digits) > exactDigits {
			return append(append(append(line, '"'), shown...), '"'), nil
		}

		if scale > 0 {
			fraction = strings.TrimRight(fraction, "0")
			whole += "." + fraction + strings.Repeat("0", max(0, 1-len(fraction)))
		}

		return append(line, whole...), nil
	}}
}

// argument returns a number in the type, such as the precision of a decimal.
func argument(s signature, index int) (n int) {
	if index < len(s.Arguments) {
		n, _ = strconv.Atoi(string(s.Arguments[index].Value))
	}

	return n
}

func text(line []byte, value json.RawMessage) ([]byte, error) {
	if value[0] != '"' {
		return nil, errCell
	}

	return append(line, value...), nil
}

// embedded writes a JSON value, which Trino sends as a text.
func embedded(line []byte, value json.RawMessage) ([]byte, error) {
	var inner string
	if err := json.Unmarshal(value, &inner); err != nil || !json.Valid([]byte(inner)) {
		return nil, errCell
	}

	return append(line, inner...), nil
}

// moment writes a time or a timestamp without the zeros at its end.
func moment(line []byte, value json.RawMessage) ([]byte, error) {
	var shown string
	if err := json.Unmarshal(value, &shown); err != nil {
		return nil, err
	}

	return appendMoment(line, shown)
}

func appendMoment(line []byte, shown string) ([]byte, error) {
	if strings.ContainsAny(shown, "\"\\") {
		return nil, errCell
	}

	if strings.Contains(shown, ".") {
		shown = strings.TrimRight(strings.TrimRight(shown, "0"), ".")
	}

	return append(append(append(line, '"'), strings.Replace(shown, " ", "T", 1)...), '"'), nil
}

// zoned writes a timestamp with time zone in UTC.
func zoned(line []byte, value json.RawMessage) ([]byte, error) {
	var shown string
	if err := json.Unmarshal(value, &shown); err != nil {
		return nil, err
	}

	local, zone, found := cutLast(shown, " ")
	if !found {
		return nil, errCell
	}

	if zone != "UTC" {
		at, err := inZone(local, zone)
		if err != nil {
			return nil, err
		}

		local = at.UTC().Format("2006-01-02 15:04:05.999999999")
	}

	line, err := appendMoment(line, local)
	if err != nil {
		return nil, err
	}

	return append(line[:len(line)-1], `Z"`...), nil
}

// inZone returns the moment of a local time. Zones are names, or offsets such as +02:00.
func inZone(local, zone string) (time.Time, error) {
	if at, err := time.Parse("2006-01-02 15:04:05.999999999-07:00", local+zone); err == nil {
		return at, nil
	}

	place, err := time.LoadLocation(zone)
	if err != nil {
		return time.Time{}, err
	}

	return time.ParseInLocation("2006-01-02 15:04:05.999999999", local, place)
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}

	return text[:at], text[at+len(separator):], true
}
