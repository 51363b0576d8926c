package duckdb

import (
	"fmt"
	"path/filepath"

	"quern.dev/quern/internal/engine"
)

// mergeFiles writes the rows of several data files to one file, in their order, or those of one file without some rows.
// Values are not changed; JSON stays text.
func (p *program) mergeFiles(request engine.MergeRequest) (merged engine.Converted, err error) {
	if err := p.db.limit(request.Memory, request.Threads); err != nil {
		return merged, err
	}

	var same projection
	for _, c := range request.View.Columns {
		same.add(c, name(c.Name))
	}

	kept, err := p.kept(request)
	if err != nil {
		return merged, explain(err)
	}

	merged.Rows, err = p.copy(same, p.filesOf(request.View), kept, filepath.Join(p.tmp, filepath.Base(request.Output)))

	return merged, explain(err)
}

// kept returns the SQL condition for the rows that stay. A filter keeps the order of rows when several threads run; a join
// with a list of rows would not.
func (p *program) kept(request engine.MergeRequest) (condition string, err error) {
	if request.Gone == "" {
		return "true", nil
	}

	bits := path(filepath.Join(p.in, filepath.Base(request.Gone)))
	if err := p.db.exec(fmt.Sprintf(`SET VARIABLE gone = (SELECT CAST(content AS BIT) FROM read_blob(%s))`, bits)); err != nil {
		return "", err
	}

	return `get_bit(getvariable('gone'), CAST(file_row_number AS INTEGER)) = 0`, nil
}
