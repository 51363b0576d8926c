package api

import (
	"bytes"
	"encoding/json"
)

// UnmarshalJSON keeps the digits of numbers among the parameters. As float64 they would lose digits, and 1 and 1.0 would be the same.
func (c *RowsCondition) UnmarshalJSON(text []byte) error {
	type plain RowsCondition

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	return decoder.Decode((*plain)(c))
}
