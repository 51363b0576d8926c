package duckdb

import (
	"fmt"
	"strings"

	"quern.dev/quern/internal/engine"
)

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
