package e2e

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"
)

// workbook returns a workbook with a sheet of orders that has a title, and a sheet of people.
func workbook(t *testing.T) string {
	t.Helper()

	book := excelize.NewFile()
	defer book.Close()

	_, err := book.NewSheet("People")
	require.NoError(t, err)

	day := func(d int) time.Time { return time.Date(2026, time.November, d, 0, 0, 0, 0, time.UTC) }

	for sheet, rows := range map[string][][]any{
		"Sheet1": {{"Orders of November"}, {}, {"id", "day", "total", "code"}, {1, day(2), 19.9, "007"}, {2, day(3), 0.1, "008"}},
		"People": {{"id", "name"}, {7, "Ann"}},
	} {
		for i := range rows {
			require.NoError(t, book.SetSheetRow(sheet, fmt.Sprintf("A%d", i+1), &rows[i]))
		}
	}

	dates, err := book.NewStyle(&excelize.Style{NumFmt: 14})
	require.NoError(t, err)
	require.NoError(t, book.SetCellStyle("Sheet1", "B4", "B5", dates))

	var written bytes.Buffer

	require.NoError(t, book.Write(&written))

	return written.String()
}

func ingestWorkbook(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "booker", key.token("booker"))
	session := uploadFiles(t, s, d.bearer, workbook(t))

	looked := d.wait(d.accepted(d.create(session, `"dryRun": true`)).ID)
	require.Equal(t, "completed", looked.Status, "%+v", looked.Error)

	doubts := fmt.Sprintf("%+v", looked.Preview.Doubts)
	require.Contains(t, doubts, `Option:sheet Message:The sheet "Sheet1" is loaded. The workbook also has "People".`)
	require.Contains(t, doubts, "A1 is above the table")

	unknown := d.wait(d.accepted(d.create(session, `"options": {"sheet": "Data"}`)).ID)
	require.Equal(t, "failed", unknown.Status)
	require.Contains(t, unknown.Error.Message, `It has "Sheet1", "People".`)

	loaded := d.wait(d.accepted(d.create(session, `"options": {"sheet": "1"}`)).ID)
	require.Equal(t, "completed", loaded.Status, "%+v", loaded.Error)
	require.Equal(t, tableContents{
		[]tableColumn{{"id", "bigint"}, {"day", "date"}, {"total", "double"}, {"code", "varchar"}},
		[][]any{{int64(1), "2026-11-02", 19.9, "007"}, {int64(2), "2026-11-03", 0.1, "008"}},
	}, d.table())

	found := d.result(`SELECT code, total FROM "`+d.name+`" WHERE day > '2026-11-02'`, "")
	require.Equal(t, []map[string]any{{"code": "008", "total": 0.1, "__metadata": map[string]any{"score": 1.0, "source": map[string]any{"file": "file 0", "row": 2.0}}}}, found.Data)
}
