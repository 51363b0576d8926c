package api_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/api"
)

// The examples run against a real service, which TestMain starts. Its namespace shop has the dataset orders with three
// rows.

// connect is what ExampleConnect shows.
func connect() *api.Client {
	client, err := api.Connect(api.Settings{
		Server: os.Getenv("QUERN_URL"),
		Token:  func(context.Context) (string, error) { return os.Getenv("QUERN_TOKEN"), nil },
	})
	if err != nil {
		log.Fatal(err)
	}

	return client
}

// Connect with an API token. The function for the token is called before every request, so it can also renew an access
// token.
func ExampleConnect() {
	client, err := api.Connect(api.Settings{
		Server: os.Getenv("QUERN_URL"), // such as https://quern.example.org
		Token:  func(context.Context) (string, error) { return os.Getenv("QUERN_TOKEN"), nil },
	})
	if err != nil {
		log.Fatal(err)
	}

	me, err := api.Read[api.Me](client.GetMe(context.Background()))
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(me.Username)
	// Output: ada
}

// Upload a file, load it into a dataset, and wait until its rows can be read. The load creates the dataset.
func ExampleUploader() {
	ctx, client := context.Background(), connect()

	file, err := os.Stat("testdata/deliveries.csv")
	if err != nil {
		log.Fatal(err)
	}

	uploader := &api.Uploader{Client: client}

	session, err := uploader.Send(ctx, []api.UploadSource{{Name: file.Name(), Path: "testdata/deliveries.csv", Size: file.Size()}})
	if err != nil {
		log.Fatal(err)
	}

	load, err := api.Read[api.Ingestion](client.CreateIngestion(ctx, "self", "shop", "deliveries", nil, api.NewIngestion{SessionID: session}))
	if err != nil {
		log.Fatal(err)
	}

	for load.Status == api.IngestionStatusQueued || load.Status == api.IngestionStatusRunning {
		time.Sleep(100 * time.Millisecond)

		if load, err = api.Read[api.Ingestion](client.GetIngestion(ctx, "self", "shop", "deliveries", load.ID)); err != nil {
			log.Fatal(err)
		}
	}

	// With the status waiting, load.Doubts says what a person must accept. With failed, load.Error says why.
	fmt.Println(load.Status, load.Progress.RowsDone, "rows")
	// Output: completed 3 rows
}

// Ask a question, and wait for the answer, the statement that answered it, and its rows.
func ExampleClient_Ask() {
	ctx, client := context.Background(), connect()

	question := api.Question{Username: "self", Namespace: "shop", Query: "What is the total amount of orders by region?"}
	wait := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Accept", "application/json")

		return nil
	}

	run, err := api.Read[api.Run](client.Ask(ctx, nil, question, wait))
	if err != nil {
		log.Fatal(err)
	}

	if run.Result == nil { // the run failed, or it takes longer: read it later with GetRun
		log.Fatal(run.Status)
	}

	fmt.Println(run.Result.Outcome, run.Result.Response)

	for _, step := range run.Result.Steps {
		fmt.Println(step.Query)

		for _, row := range step.Data {
			fmt.Println(row["region"], row["total amount"])
		}
	}
	// Output:
	// answer Total amount of orders, by region:
	//
	// | region | total amount |
	// |---|---:|
	// | north | 7 |
	// | south | 5 |
	// SELECT "region" AS "region", sum("amount") AS "total amount" FROM "orders" GROUP BY "region" ORDER BY "region"
	// north 7
	// south 5
}

// Follow a question while it is answered. A broken stream is resumed, so every event arrives once.
func ExampleClient_AskEvents() {
	ctx, client := context.Background(), connect()

	for event, err := range client.AskEvents(ctx, api.Question{Username: "self", Namespace: "shop", Query: "How many orders are there?"}) {
		if err != nil {
			log.Fatal(err)
		}

		fmt.Println(event.ID, event.Name)
	}
	// Output:
	// 1 runStarted
	// 2 planningStarted
	// 3 plan
	// 4 stepStarted
	// 5 queryExecuting
	// 6 step
	// 7 answerStarted
	// 8 answer
	// 9 runCompleted
}

// Run a statement. Numbers are json.Number, with the digits that were sent.
func ExampleClient_RunQuery() {
	ctx, client := context.Background(), connect()

	result, err := api.Read[api.QueryResult](client.RunQuery(ctx, nil, api.QueryRequest{
		Query: "SELECT region, sum(amount) AS total FROM shop.orders GROUP BY region ORDER BY region",
	}))
	if err != nil {
		log.Fatal(err)
	}

	for _, row := range result.Data {
		fmt.Println(row["region"], row["total"])
	}

	fmt.Println("truncated:", result.Metadata.Truncated)
	// Output:
	// north 7
	// south 5
	// truncated: false
}

// Read the rows of a statement as a stream, here as CSV, so that they need not fit into memory.
func ExampleClient_RunQuery_stream() {
	ctx, client := context.Background(), connect()

	request := api.QueryRequest{Query: "SELECT region, amount FROM shop.orders ORDER BY amount"}
	asCSV := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Accept", "text/csv")

		return nil
	}

	response, err := api.Check(client.RunQuery(ctx, nil, request, asCSV))
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()

	rows := csv.NewReader(response.Body)
	for row, err := rows.Read(); err == nil; row, err = rows.Read() {
		fmt.Println(row)
	}
	// Output:
	// [region amount]
	// [north 3]
	// [north 4]
	// [south 5]
}

// Read all rows of a dataset, page by page.
func ExamplePages() {
	ctx, client := context.Background(), connect()

	rows := api.Pages(func(cursor *string) ([]api.Row, *string, error) {
		page, err := api.Read[api.RowPage](client.ListRows(ctx, "self", "shop", "orders", &api.ListRowsParams{Limit: new(int32(2)), Cursor: cursor}))

		return page.Data, page.NextCursor, err
	})

	for row, err := range rows {
		if err != nil {
			log.Fatal(err)
		}

		fmt.Println(row["region"], row["amount"])
	}
	// Output:
	// north 3
	// south 5
	// north 4
}

// Handle an error. The codes are a closed set; the message is for people.
func ExampleIsCode() {
	ctx, client := context.Background(), connect()

	_, err := api.Read[api.Dataset](client.GetDataset(ctx, "self", "shop", "absent"))
	if api.IsCode(err, api.NOTFOUND) {
		fmt.Println("there is no such dataset, or you may not see it")
	}

	if refused, ok := errors.AsType[*api.Error](err); ok {
		fmt.Println(refused.Status, refused.ErrorCode, refused.Message)
	}
	// Output:
	// there is no such dataset, or you may not see it
	// 404 NOT_FOUND There is no dataset "self/shop/absent" that you can see. GET /schema/self/shop/datasets lists those that you can see.
}

// Repeat a request safely. The client repeats requests that failed for a moment, each with an Idempotency-Key of its own.
// With a key that you store, your program can also repeat a request after a crash, and the rows are stored once.
func ExampleRetry() {
	ctx, client := context.Background(), connect()

	if _, err := api.Read[api.Dataset](client.CreateDataset(ctx, "shop", "events", nil, api.InferDefinitionChange{})); err != nil {
		log.Fatal(err)
	}

	key := uuid.NewString() // store it before the first attempt

	for range 2 {
		stored, err := api.Read[api.Indexed](client.IngestRows(ctx, "shop", "events", &api.IngestRowsParams{IdempotencyKey: &key},
			api.NewRows{Data: []api.Row{{"id": 1, "name": "opened"}}}))
		if err != nil {
			log.Fatal(err)
		}

		fmt.Println(stored.Indexed, "row stored")
	}

	events, err := api.Read[api.Dataset](client.GetDataset(ctx, "self", "shop", "events"))
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(events.Metadata.RowCount, "row in the dataset")
	// Output:
	// 1 row stored
	// 1 row stored
	// 1 row in the dataset
}
