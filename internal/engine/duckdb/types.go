package duckdb

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/engine"
)

var decimalType = regexp.MustCompile(`^decimal\(([0-9]{1,2}), ?([0-9]{1,2})\)$`)

func decimalOf(kind string) (precision, scale int, ok bool) {
	found := decimalType.FindStringSubmatch(kind)
	if found == nil {
		return 0, 0, false
	}

	precision, _ = strconv.Atoi(found[1])
	scale, _ = strconv.Atoi(found[2])

	return precision, scale, precision >= 1 && precision <= 38 && scale <= precision
}

// isType reports whether kind is a type that a column can have.
func isType(kind string) bool {
	_, ok := plain(kind)

	return ok || kind == engine.Varchar
}

// sqlType returns DuckDB's name for a type.
func sqlType(kind string) string {
	if precision, scale, ok := decimalOf(kind); ok {
		return fmt.Sprintf("DECIMAL(%d, %d)", precision, scale)
	}

	if kind == engine.JSON {
		return "VARCHAR"
	}

	return strings.ToUpper(kind)
}

// merge returns the type of a column that has the types a and b in two files.
func merge(a, b string) string {
	wide, isWide := widest(a, b)

	switch {
	case a == b || b == "":
		return a
	case a == "":
		return b
	case isWide:
		return wide
	}

	pair := []string{a, b}
	slices.Sort(pair)

	switch [2]string(pair) {
	case [2]string{engine.Bigint, engine.Double}:
		return engine.Double
	case [2]string{engine.Date, engine.Timestamp}:
		return engine.Timestamp
	default:
		return engine.Varchar
	}
}

// widest returns the smallest decimal type that can represent the values of both decimal types.
func widest(a, b string) (string, bool) {
	precision, scale, isDecimal := decimalOf(a)
	otherPrecision, otherScale, otherIs := decimalOf(b)

	if !isDecimal || !otherIs {
		return "", false
	}

	digits := max(precision-scale, otherPrecision-otherScale)
	scale = max(scale, otherScale)

	if digits+scale > 38 {
		return "", false
	}

	return fmt.Sprintf("decimal(%d,%d)", digits+scale, scale), true
}
