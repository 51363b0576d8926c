package planner

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChanges(t *testing.T) {
	t.Parallel()

	for _, order := range []string{
		"Delete all orders", "delete order 17", "Delete!", "Could you please remove the late orders?", "DROP TABLE orders", "drop the dataset orders",
		"UPDATE orders SET status = 'late'", "Update all prices by 5%", "Set the status of order 5 to late", "insert into orders values (1)",
		"Add a new row to customers", "Rename the column amount to price", "Share the orders with bob", "I want to erase everything", "TRUNCATE orders",
	} {
		require.True(t, Changes(order), order)
	}

	for _, question := range []string{
		"How many orders were deleted?", "Share of orders by region", "Change in revenue between 2024 and 2025", "Update times of the servers by day",
		"Drop in sales by month", "Add up all amounts", "Create a table of orders by region", "Make a list of customers", "Which orders should we delete?",
		"Set sizes by product", "Which rows were updated last week?", "And by region?", "", "Moves by month",
	} {
		require.False(t, Changes(question), question)
	}
}
