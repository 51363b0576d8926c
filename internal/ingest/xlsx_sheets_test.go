package ingest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"
)

func sheetCases() []corpusCase {
	second := row(1, textCell("A1", "id")+textCell("B1", "name")) + row(2, numberCell("A2", "7")+textCell("B2", "Cem"))
	readSecond := `{"options": {"sheet": "SHEET"}, ` + idAndName + `, "rows": [[7, "Cem"]]}`
	replace := func(sheet string) string {
		return `{"options": {"sheet": "` + sheet + `"}` + readSecond[len(`{"options": {"sheet": "SHEET"}`):]
	}
	sheets := `<workbook><sheets><sheet name="A" sheetId="9" r:id="rId1" state="hidden"/><sheet name="B" sheetId="3" r:id="rId2"/></sheets></workbook>`

	return []corpusCase{
		byHand("sheet-only", "The only sheet with something in it is taken.", plainRead, row(1, `<c r="A1" s="1"/>`), plainRows(), ""),
		byHand("sheet-several", "The first sheet is taken, the others are named.",
			`{`+idAndName+`, "rows": [[1, "Ann"], [2, "Bob"]], "doubts": [{"option": "sheet", "contains": "\"Sheet2\", \"Sheet3\""}]}`, plainRows(), second, second),
		byHand("sheet-by-name", "The option names the sheet.", replace("Sheet2"), plainRows(), second),
		byHand("sheet-by-name-case", "Case and blanks do not matter.", replace(" sheet2 "), plainRows(), second),
		byHand("sheet-by-number", "The option has the number of the sheet.", replace("2"), plainRows(), second),
		byHand("sheet-unknown", "The sheets that are there are named.",
			`{"options": {"sheet": "Data"}, "fault": {"code": "VALIDATION_FAILED", "contains": "\"Sheet1\", \"Sheet2\""}}`, plainRows(), second),
		byHand("sheet-number-unknown", "There is no such sheet.", `{"options": {"sheet": "3"}, "fault": {"code": "VALIDATION_FAILED", "contains": "no sheet"}}`, plainRows(), second),
		withPart("sheet-hidden", "A hidden sheet is not taken by itself.", `{`+idAndName+`, "rows": [[7, "Cem"]]}`, "xl/workbook.xml", sheets, plainRows(), second),
		withPart("sheet-hidden-named", "A hidden sheet can be named.", `{"options": {"sheet": "A"}, `+idAndName+`, "rows": [[1, "Ann"], [2, "Bob"]]}`, "xl/workbook.xml", sheets, plainRows(), second),
		withPart("sheet-hidden-only", "Only a hidden sheet has something in it.", `{"fault": {"code": "INVALID_FILE", "contains": "hidden"}}`, "xl/workbook.xml", sheets, plainRows(), ""),
		byHand("sheet-empty", "No cell has a value.", `{"fault": {"code": "INVALID_FILE", "contains": "empty"}}`, row(5, `<c r="A5" s="3"/>`)),
		byHand("sheet-empty-named", "The sheet that is named has no value.", `{"options": {"sheet": "2"}, "fault": {"code": "INVALID_FILE", "contains": "empty"}}`, plainRows(), ""),
		byHand("rows-hidden", "Hidden rows and columns are loaded.", plainRead,
			`<cols><col min="1" max="1" hidden="1"/></cols><sheetData>`+row(1, textCell("A1", "id")+textCell("B1", "name"))+`<row r="2" hidden="1">`+numberCell("A2", "1")+textCell("B2", "Ann")+`</row>`+
				row(3, numberCell("A3", "2")+textCell("B3", "Bob"))+`</sheetData>`),
		byHand("header-no", "The option header, and names of our own.", `{"options": {"header": false}, "columns": [{"name": "column_1", "type": "varchar"}, {"name": "column_2", "type": "varchar"}],
			"rows": [["id", "name"], ["1", "Ann"], ["2", "Bob"]]}`, plainRows()),
		byHand("header-none", "Rows without names.", `{"columns": [{"name": "column_1", "type": "bigint"}, {"name": "column_2", "type": "varchar"}], "rows": [[1, "Ann"], [2, "Bob"]]}`,
			row(1, numberCell("A1", "1")+textCell("B1", "Ann"))+row(2, numberCell("A2", "2")+textCell("B2", "Bob"))),
		byHand("single-cell", "One number is a table.", `{"columns": [{"name": "column_1", "type": "bigint"}], "rows": [[5]]}`, row(1, numberCell("A1", "5"))),
		byLibrary("macros", "A workbook with macros is read, its macros are not.", plainRead, func(tb testing.TB, book *excelize.File) {
			tb.Helper()
			put(tb, book, "A1", []any{"id", "name"}, []any{1, "Ann"}, []any{2, "Bob"})

			book.Path = "book.xlsm"
			require.NoError(tb, book.AddVBAProject([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1macro")))
		}),
	}
}

func layoutCases() []corpusCase {
	tables := func(contains string) string {
		return `{"fault": {"code": "INVALID_FILE", "contains": "` + contains + `"}}`
	}

	at := func(name, about, want string, places map[string][][]any) corpusCase {
		return byLibrary(name, about, want, func(tb testing.TB, book *excelize.File) {
			tb.Helper()

			for from, rows := range places {
				put(tb, book, from, rows...)
			}
		})
	}

	merged := func(name, about, want string, rows [][]any, ranges ...string) corpusCase {
		return byLibrary(name, about, want, func(tb testing.TB, book *excelize.File) {
			tb.Helper()
			put(tb, book, "A1", rows...)

			for i := 0; i < len(ranges); i += 2 {
				require.NoError(tb, book.MergeCell("Sheet1", ranges[i], ranges[i+1]))
			}
		})
	}

	plain := [][]any{{"id", "name"}, {1, "Ann"}, {2, "Bob"}}

	return []corpusCase{
		at("elsewhere", "A table need not begin in A1.", plainRead, map[string][][]any{"D7": plain}),
		at("titles", "Lines above and below the table are left out, and told.",
			`{`+idAndName+`, "rows": [[1, "Ann"], [2, "Bob"]], "doubts": [{"option": "skipRows", "contains": "A1:A2 is above"}, {"contains": "A8 is below"}]}`,
			map[string][][]any{"A1": {{"People"}, {"of the town"}}, "A4": plain, "A8": {{"Source: the mayor"}}}),
		at("title-close", "A line directly above.", `{`+idAndName+`, "rows": [[1, "Ann"], [2, "Bob"]], "doubts": [{"option": "skipRows"}]}`, map[string][][]any{"B1": {{"People"}}, "B2": plain}),
		at("title-is-row", "The option header says that the line above is a row.",
			`{"options": {"header": false}, "columns": [{"name": "column_1", "type": "varchar"}, {"name": "column_2", "type": "bigint"}], "rows": [["Ann", null], ["Bob", 1], ["Cem", 2]]}`,
			map[string][][]any{"A1": {{"Ann"}, {"Bob", 1}, {"Cem", 2}}}),
		at("skip-rows", "The option skipRows counts rows of the sheet.", `{"options": {"skipRows": 2}, `+idAndName+`, "rows": [[1, "Ann"], [2, "Bob"]]}`,
			map[string][][]any{"A1": {{"Report", 5, 6}, {"x", "y"}}, "A3": plain}),
		at("empty-rows", "Empty rows do not count, and are told.", `{`+idAndName+`, "rows": [[1, "Ann"], [2, "Bob"], [3, "Cem"]], "doubts": [{"contains": "Row 4"}]}`,
			map[string][][]any{"A1": plain, "A6": {{3, "Cem"}}}),
		at("tables-beside", "Two tables beside each other.", tables("A1:B3 and F1:G5"), map[string][][]any{"A1": plain, "F1": append(plain, plain[1:]...)}),
		at("tables-below", "Two tables below each other.", tables("A1:B3 and A6:B8"), map[string][][]any{"A1": plain, "A6": plain}),
		at("blanks", "Blanks that nobody sees are no table.", plainRead, map[string][][]any{"A1": plain, "G20": {{" "}}}),
		at("tables-many", "A table, one below with other columns, one elsewhere.", tables("A1:B3, B10:C12 and F20"), map[string][][]any{"A1": plain, "B10": plain, "F20": {{5}}}),
		at("single-column", "A column of numbers with its name.", `{"columns": [{"name": "n", "type": "bigint"}], "rows": [[1], [2]]}`, map[string][][]any{"C3": {{"n"}, {1}, {2}}}),
		at("single-column-texts", "A list of texts with an empty row.", `{"columns": [{"name": "n", "type": "varchar"}], "rows": [["a"], ["b"]], "doubts": [{"contains": "Row 3"}]}`,
			map[string][][]any{"A1": {{"n"}, {"a"}}, "A4": {{"b"}}}),
		at("total-row", "A total below an empty row is a row, as it is in CSV.",
			`{`+idAndName+`, "rows": [[1, "Ann"], [2, "Bob"], [3, null]], "doubts": [{"contains": "Row 4"}]}`, map[string][][]any{"A1": plain, "A5": {{3}}}),
		merged("merged-body", "A merged cell has its value in each of its rows.", `{"columns": [{"name": "region", "type": "varchar"}, {"name": "n", "type": "bigint"}],
			"rows": [["North", 1], ["North", 2], ["South", 3], ["South", 4]]}`, [][]any{{"region", "n"}, {"North", 1}, {nil, 2}, {"South", 3}, {nil, 4}}, "A2", "A3", "A4", "A5"),
		merged("merged-across", "A cell that is merged across columns.", `{"columns": [{"name": "a", "type": "bigint"}, {"name": "b", "type": "bigint"}, {"name": "c", "type": "bigint"}],
			"rows": [[1, 1, 2], [3, 4, 5]]}`, [][]any{{"a", "b", "c"}, {1, nil, 2}, {3, 4, 5}}, "A2", "B2"),
		merged("merged-header", "Names in two rows become one name.", `{"columns": [{"name": "region", "type": "varchar"}, {"name": "2025 sales", "type": "bigint"}, {"name": "2025 cost", "type": "bigint"},
			{"name": "2026 sales", "type": "bigint"}], "rows": [["North", 1, 2, 3]]}`, [][]any{{"region", "2025", nil, "2026"}, {nil, "sales", "cost", "sales"}, {"North", 1, 2, 3}}, "A1", "A2", "B1", "C1"),
		merged("merged-texts", "A row of texts below a merged name is a row.", `{"columns": [{"name": "name", "type": "varchar"}, {"name": "address", "type": "varchar"}, {"name": "address_1", "type": "varchar"}],
			"rows": [["Ann", "Main St", "Bonn"], ["Bob", "Side St", "Köln"]], "doubts": [{"column": "address_1"}]}`, [][]any{{"name", "address"}, {"Ann", "Main St", "Bonn"}, {"Bob", "Side St", "Köln"}}, "B1", "C1"),
		merged("merged-name", "One name for two columns.", `{"columns": [{"name": "size", "type": "bigint"}, {"name": "size_1", "type": "bigint"}, {"name": "c", "type": "bigint"}],
			"rows": [[1, 2, 3]], "doubts": [{"column": "size_1"}]}`, [][]any{{"size", nil, "c"}, {1, 2, 3}}, "A1", "B1"),
		merged("merged-column", "A column that only merged cells reach into is no gap.", `{"columns": [{"name": "id", "type": "bigint"}, {"name": "id_1", "type": "bigint"}, {"name": "name", "type": "varchar"}],
			"rows": [[1, 1, "Ann"], [2, 2, "Bob"]], "doubts": [{"column": "id_1"}]}`, [][]any{{"id", nil, "name"}, {1, nil, "Ann"}, {2, nil, "Bob"}}, "A1", "B1", "A2", "B2", "A3", "B3"),
	}
}
