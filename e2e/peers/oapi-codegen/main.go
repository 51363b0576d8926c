// Command smoke calls the service with the client that oapi-codegen made.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"reflect"
	"slices"
	"smoke/quern"

	"github.com/google/uuid"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}

	fmt.Println("every call was answered as documented")
}

func run(ctx context.Context) error {
	namespace := os.Getenv("QUERN_NAMESPACE")

	client, err := quern.NewClientWithResponses(os.Getenv("QUERN_URL"), quern.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("QUERN_TOKEN"))
		return nil
	}))
	if err != nil {
		return err
	}

	me, err := client.GetMeWithResponse(ctx)
	if err != nil || me.JSON200 == nil || me.JSON200.Username != "ada" {
		return fmt.Errorf("getMe: %v %+v", err, me)
	}

	username, description := me.JSON200.Username, "Orders of the shop"

	created, err := client.CreateDatasetWithResponse(ctx, namespace, "orders", nil, quern.InferDefinitionChange{DataDescription: &description})
	if err != nil || created.JSON201 == nil {
		return fmt.Errorf("createDataset: %v %+v", err, created)
	}

	rows := quern.NewRows{Data: []quern.Row{{"region": "north"}, {"region": "south"}, {"region": "west"}}}

	stored, err := client.IngestRowsWithResponse(ctx, namespace, "orders", nil, rows)
	if err != nil || stored.JSON200 == nil || stored.JSON200.Indexed != 3 {
		return fmt.Errorf("ingestRows: %v %+v", err, stored)
	}

	if err := readRows(ctx, client, username, namespace); err != nil {
		return err
	}

	asked, err := client.AskWithResponse(ctx, nil, quern.Question{Username: username, Namespace: namespace, Query: os.Getenv("QUERN_QUESTION")})
	if err != nil || asked.JSON200 == nil || asked.JSON200.Status != quern.RunStatusCompleted || asked.JSON200.Result.Response != "Two regions." {
		return fmt.Errorf("ask: %v %+v", err, asked)
	}

	return beRefused(ctx, client, username, namespace)
}

// readRows reads three rows in two pages.
func readRows(ctx context.Context, client *quern.ClientWithResponses, username, namespace string) error {
	var (
		seen   []any
		pages  int
		limit  = int32(2)
		params = quern.ListRowsParams{Limit: &limit}
	)

	for pages == 0 || params.Cursor != nil {
		page, err := client.ListRowsWithResponse(ctx, username, namespace, "orders", &params)
		if err != nil || page.JSON200 == nil {
			return fmt.Errorf("listRows: %v %+v", err, page)
		}

		for _, row := range page.JSON200.Data {
			seen = append(seen, row["region"])
		}

		params.Cursor = page.JSON200.NextCursor
		pages++
	}

	if pages != 2 || !reflect.DeepEqual(seen, []any{"north", "south", "west"}) {
		return fmt.Errorf("listRows: %d pages, %v", pages, seen)
	}

	return nil
}

// beRefused makes two mistakes and reads the error bodies.
func beRefused(ctx context.Context, client *quern.ClientWithResponses, username, namespace string) error {
	delimiter := ";"
	ingestion := quern.NewIngestion{
		SessionId: uuid.New(),
		Options:   &quern.IngestionOptions{Delimiter: &delimiter, Types: &map[string]string{"region": "varchar"}},
	}

	absent, err := client.CreateIngestionWithResponse(ctx, username, namespace, "orders", nil, ingestion)
	if err != nil || absent.JSON404 == nil || absent.JSON404.ErrorCode != quern.NOTFOUND {
		return fmt.Errorf("createIngestion: %v %+v", err, absent)
	}

	wrong, err := client.RunQueryWithResponse(ctx, nil, quern.QueryRequest{Username: &username, Namespace: &namespace, Query: "SELECT regoin FROM orders"})
	if err != nil || wrong.JSON422 == nil || wrong.JSON422.ErrorCode != quern.QUERYINVALID || wrong.JSON422.SubErrors == nil {
		return fmt.Errorf("runQuery: %v %+v", err, wrong)
	}

	if !slices.Contains(*wrong.JSON422.SubErrors, quern.SubError{Code: "candidate", Message: "region"}) {
		return fmt.Errorf("runQuery: %+v", *wrong.JSON422.SubErrors)
	}

	return nil
}
