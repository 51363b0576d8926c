package duckdb

import (
	"fmt"
	"strings"

	"quern.dev/quern/internal/engine"
)

// isType reports whether kind is a type that a column can have.
func isType(kind string) bool {
	_, ok := plain(kind)

	return ok || kind == engine.Varchar
}

// sqlType returns DuckDB's name for a type.
func sqlType(kind string) string {
	if precision, scale, ok := engine.DecimalOf(kind); ok {
		return fmt.Sprintf("DECIMAL(%d, %d)", precision, scale)
	}

	if kind == engine.JSON {
		return "VARCHAR"
	}

	return strings.ToUpper(kind)
}
