package duckdb

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"quern.dev/quern/internal/engine"
)

// rejected returns the records that DuckDB could not parse, with their row numbers.
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

	// Records that contain only blanks or delimiters are not rows.
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

		// DuckDB stops counting at the first column that is too many, so its count cannot be reported.
		if strings.Contains(kind, "TOO MANY") {
			return fmt.Sprintf("the row has more than %s columns", strings.TrimSpace(expected))
		}

		return fmt.Sprintf("the row has %s columns instead of %s", strings.TrimSpace(found), strings.TrimSpace(expected))
	case strings.Contains(kind, "UNQUOTED"):
		return "a quote is closed in the middle of a value"
	default:
		return "the row cannot be parsed"
	}
}

// isMemory reports whether DuckDB ran out of memory, because of its own limit or that of the process.
func isMemory(err error) bool {
	refused, ok := errors.AsType[*statementError](err)

	return ok && (strings.Contains(refused.message, "Out of Memory") || strings.Contains(refused.message, "bad allocation") ||
		strings.Contains(refused.message, "bad_alloc") || strings.Contains(refused.message, "Cannot allocate memory"))
}

// isNoRoom reports whether the disk was full, for DuckDB or for this program. DuckDB reports it with the message of the
// operating system. Only DuckDB's IO errors are checked, because other errors can quote texts of users.
func isNoRoom(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}

	kind, message := "", ""

	if refused, ok := errors.AsType[*statementError](err); ok {
		kind, message = kindOfError(refused.message), refused.message
	}

	if refused, ok := errors.AsType[*refusal](err); ok {
		kind, message = refused.said.Kind, refused.said.Message
	}

	return strings.HasPrefix(strings.ToLower(kind), "io") && (strings.Contains(message, "No space left on device") || strings.Contains(message, "Disk quota exceeded"))
}

// explain replaces an error of DuckDB about a file with a message for users. DuckDB's own messages contain paths and
// SQL.
func explain(err error) error {
	refused, ok := errors.AsType[*statementError](err)

	switch {
	case !ok, isNoRoom(err), strings.HasPrefix(refused.message, "INTERRUPT"):
		return err
	case isMemory(err):
		return &failure{code: engine.LimitExceeded, message: "Reading the file needs more memory than is allowed. Split the file or ask the operator for a higher limit."}
	case strings.Contains(refused.message, "File too large") || strings.Contains(refused.message, "max_temp_directory_size"):
		return &failure{code: engine.LimitExceeded, message: "Reading the file needs more disk space than is allowed. Split the file or ask the operator for a higher limit."}
	case strings.Contains(refused.message, "Maximum line size"):
		return &failure{code: engine.LineTooLong, message: "A line is longer than is allowed."}
	case strings.HasPrefix(refused.message, "Parser Error"), strings.HasPrefix(refused.message, "Binder Error"), strings.HasPrefix(refused.message, "Catalog Error"):
		return err // a bug in Quern
	default:
		return invalid("The file cannot be read: it is broken, or its format is not the expected one.")
	}
}
