package engine

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Join adds the columns of a file to those of the files before it. A column that both have gets a type that can represent the values of both. A
// column without values has no type.
func Join(columns, more []Column) []Column {
	for _, c := range more {
		i := slices.IndexFunc(columns, func(known Column) bool { return strings.EqualFold(known.Name, c.Name) })
		if i < 0 {
			columns = append(columns, c)
		} else {
			columns[i].Type = joinTypes(columns[i].Type, c.Type)
		}
	}

	return columns
}

// TooManyInTotal returns the message for files that have too many columns together.
func TooManyInTotal(columns int, bounds Bounds) string {
	return fmt.Sprintf("The files have %d columns in total; %d are allowed.", columns, bounds.Columns)
}

// joinTypes returns the type of a column that has the types a and b in two files.
func joinTypes(a, b string) string {
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
	case [2]string{Bigint, Double}:
		return Double
	case [2]string{Date, Timestamp}:
		return Timestamp
	default:
		return Varchar
	}
}

// widest returns the smallest decimal type that can represent the values of both decimal types.
func widest(a, b string) (string, bool) {
	precision, scale, isDecimal := DecimalOf(a)
	otherPrecision, otherScale, otherIs := DecimalOf(b)

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

var decimalType = regexp.MustCompile(`^decimal\(([0-9]{1,2}), ?([0-9]{1,2})\)$`)

// DecimalOf returns the precision and the scale of a decimal type.
func DecimalOf(kind string) (precision, scale int, ok bool) {
	found := decimalType.FindStringSubmatch(kind)
	if found == nil {
		return 0, 0, false
	}

	precision, _ = strconv.Atoi(found[1])
	scale, _ = strconv.Atoi(found[2])

	return precision, scale, precision >= 1 && precision <= 38 && scale <= precision
}
