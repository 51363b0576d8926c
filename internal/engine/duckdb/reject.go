package duckdb

import (
	"errors"
	"fmt"
	"strings"

	"quern.dev/quern/internal/engine"
)

// rejected are the records that DuckDB could not take apart, with their numbers.
func (p *program) rejected(s *source, table string) (asideRows, error) {
	if s.file.format == engine.FormatParquet {
		return asideRows{}, nil
	}

	d := s.lines
	if s.dialect != nil {
		d = *s.dialect
	}

	type reject struct {
		Line     int64
		Position int64
		Type     string
		Message  string
		Count    int64
	}

	// Records of nothing but blanks or delimiters are no rows.
	found, err := rows[reject](p.db, fmt.Sprintf(`
		SELECT *, count(*) OVER () AS "Count" FROM (
			SELECT line AS "Line", min(line_byte_position) AS "Position", min(error_type) AS "Type", left(min(error_message), 200) AS "Message"
			FROM %s WHERE trim(csv_line, e' \t\r\n') <> '' AND trim(csv_line, e'\r\n' || %s) <> '' GROUP BY line)
		ORDER BY "Line" LIMIT %d`, table, text(d.delimiter), p.bounds.SetAside))
	if err != nil || len(found) == 0 {
		return asideRows{}, err
	}

	positions := make([]int64, len(found))
	for i, r := range found {
		positions[i] = r.Position
	}

	seen, err := s.file.look(d, positions)
	if err != nil {
		return asideRows{}, err
	}

	before := int64(d.skip)
	if d.header {
		before++
	}

	aside := asideRows{count: found[0].Count}
	for i, r := range found {
		aside.rows = append(aside.rows, engine.SetAside{Row: max(r.Line-before-seen.blanks[i], 1), Reason: rejection(r.Type, r.Message)})
	}

	return aside, nil
}

func rejection(kind, message string) string {
	switch {
	case strings.Contains(kind, "COLUMNS"):
		_, counts, _ := strings.Cut(message, "Expected Number of Columns: ")
		expected, found, _ := strings.Cut(counts, " Found: ")

		// It stops counting at the first one too many.
		if strings.Contains(kind, "TOO MANY") {
			return fmt.Sprintf("the row has more than %s columns", strings.TrimSpace(expected))
		}

		return fmt.Sprintf("the row has %s columns instead of %s", strings.TrimSpace(found), strings.TrimSpace(expected))
	case strings.Contains(kind, "UNQUOTED"):
		return "a quote is closed in the middle of a value"
	default:
		return "the row cannot be taken apart"
	}
}

// isMemory tells whether DuckDB had not enough memory: its own limit, or that of the process.
func isMemory(err error) bool {
	refused, ok := errors.AsType[*statementError](err)

	return ok && (strings.Contains(refused.message, "Out of Memory") || strings.Contains(refused.message, "bad allocation") ||
		strings.Contains(refused.message, "bad_alloc") || strings.Contains(refused.message, "Cannot allocate memory"))
}

// explain puts DuckDB's refusal to read a file into our words: its own have paths and SQL in them.
func explain(err error) error {
	refused, ok := errors.AsType[*statementError](err)

	switch {
	case !ok, strings.HasPrefix(refused.message, "INTERRUPT"):
		return err
	case isMemory(err):
		return &failure{engine.LimitExceeded, "The file needs more memory to be read than is allowed."}
	case strings.Contains(refused.message, "No space left") || strings.Contains(refused.message, "File too large") || strings.Contains(refused.message, "max_temp_directory_size"):
		return &failure{engine.LimitExceeded, "The file needs more space to be read than is allowed."}
	case strings.Contains(refused.message, "Maximum line size"):
		return &failure{engine.LineTooLong, "A line is longer than is allowed."}
	case strings.HasPrefix(refused.message, "Parser Error"), strings.HasPrefix(refused.message, "Binder Error"), strings.HasPrefix(refused.message, "Catalog Error"):
		return err // a fault of ours
	default:
		return invalid("The file cannot be read: it is broken, or not what it says it is.")
	}
}
