package duckdb

import (
	"fmt"
	"strings"

	"quern.dev/quern/internal/engine"
)

// sketch returns the smallest hashes of the rows of a converted file. A NULL does not change the hash of a row, so that
// a row has the same hash before and after a column is added to its table.
func (p *program) sketch(output string, request engine.ConvertRequest) ([]uint64, error) {
	if request.Sketch == 0 || len(request.Columns) > wideFile {
		return nil, nil
	}

	hash := "0::UBIGINT"
	for _, c := range request.Columns {
		hash = fmt.Sprintf(`xor(%s, CASE WHEN %[2]s IS NULL THEN 0::UBIGINT ELSE hash(%[2]s, %[3]s) END)`, hash, name(c.Name), text(strings.ToLower(c.Name)))
	}

	type hashed struct{ Hash uint64 }

	found, err := rows[hashed](p.db, fmt.Sprintf(`SELECT h AS "Hash" FROM (SELECT %s AS h FROM read_parquet(%s)) ORDER BY h LIMIT %d`,
		hash, path(output), request.Sketch))
	if err != nil {
		return nil, explain(err)
	}

	hashes := make([]uint64, len(found))
	for i, f := range found {
		hashes[i] = f.Hash
	}

	return hashes, nil
}
