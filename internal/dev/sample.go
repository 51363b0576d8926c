package dev

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"quern.dev/quern/api"
)

// The sample is a small coffee roastery. Its rows are invented, written for this purpose, and in the public domain
// (CC0).
const (
	Namespace = "roastery"
	SampleFor = "ada"
)

//go:embed sample/*.csv
var sampleFiles embed.FS

// described is a dataset of the sample with the definition that its owner wrote.
type described struct {
	name, description string
	columns           map[string]string
	money             string // name of its column with amounts of money; empty if none
}

func sample() []described {
	return []described{
		{"customers", "Customers of a small coffee roastery: one row each.", map[string]string{
			"segment": "What kind of customer: household, cafe or office.", "since": "Day of the first order.",
		}, ""},
		{"products", "What the roastery sells: one row for each product.", map[string]string{
			"category": "beans, equipment or accessories.", "origin": "Country that it comes from.", "price": "Price of one piece in euro.",
		}, "price"},
		{"orders", "Orders of January to September 2026: one row for each product that was ordered.", map[string]string{
			"customer_id": "Who ordered: customers.customer_id.", "product": "Name of the product.", "quantity": "Pieces.",
			"amount": "Quantity times price, in euro.", "channel": "How it was ordered: web, phone or market.",
			"status": "open, shipped, delivered or cancelled.",
		}, "amount"},
	}
}

// Upload is the file that people upload first, and Ask is a question about it that needs no model.
const (
	Upload = "deliveries"
	Ask    = "Which carrier has the most deliveries?"
)

// Questions returns questions about the sample that need no model.
func Questions() []string {
	return []string{
		"How many orders are cancelled?",
		"What is the total amount of orders by country?",
		"Which product has the highest price?",
		"How many customers live in Vienna?",
	}
}

// SampleFile returns the path of a sample file after WriteSample.
func (f *Folder) SampleFile(name string) string { return f.File("sample", name+".csv") }

// WriteSample writes the files of the sample to the folder, where people can read them.
func (f *Folder) WriteSample() error {
	if err := os.MkdirAll(f.File("sample"), 0o700); err != nil {
		return err
	}

	for _, name := range []string{"customers", "products", "orders", Upload} {
		content, err := sampleFiles.ReadFile("sample/" + name + ".csv")
		if err == nil {
			err = os.WriteFile(f.SampleFile(name), content, 0o600)
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// LoadSample loads the sample through the API, once for each folder. It does not change datasets that already have
// rows.
func (f *Folder) LoadSample(ctx context.Context, to *api.Client) error {
	if f.State.Sampled {
		return nil
	}

	for _, dataset := range sample() {
		if err := f.load(ctx, to, dataset); err != nil {
			return fmt.Errorf("%s/%s: %w", Namespace, dataset.name, err)
		}
	}

	if err := f.awaitValues(ctx, to); err != nil {
		return err
	}

	f.State.Sampled = true

	return f.Keep()
}

func (f *Folder) load(ctx context.Context, to *api.Client, dataset described) error {
	there, err := api.Read[api.Dataset](to.GetDataset(ctx, "self", Namespace, dataset.name))
	if api.IsCode(err, api.NOTFOUND) {
		there, err = api.Read[api.Dataset](to.CreateDataset(ctx, Namespace, dataset.name, nil, api.InferDefinitionChange{
			DataDescription: &dataset.description, SchemaDefinition: &dataset.columns,
		}))
	}

	if err != nil || there.Metadata.RowCount > 0 {
		return err
	}

	path := f.SampleFile(dataset.name)

	info, err := os.Stat(path)
	if err != nil {
		return err
	}

	uploader := &api.Uploader{Client: to}

	session, err := uploader.Send(ctx, []api.UploadSource{{Name: filepath.Base(path), Path: path, Size: info.Size()}})
	if err != nil {
		return err
	}

	// Replacing an empty dataset equals appending, and it can be repeated.
	request := api.NewIngestion{SessionID: session, Mode: new(api.NewIngestionModeReplace), Accept: &[]api.DoubtCode{api.All}}
	if dataset.money != "" {
		request.Options = &api.IngestionOptions{Types: &map[string]string{dataset.money: "decimal(12,2)"}}
	}

	ingestion, err := api.Read[api.Ingestion](to.CreateIngestion(ctx, "self", Namespace, dataset.name, nil, request))
	for err == nil && ingestion.FinishedAt == nil {
		if err = pause(ctx); err == nil {
			ingestion, err = api.Read[api.Ingestion](to.GetIngestion(ctx, "self", Namespace, dataset.name, ingestion.ID))
		}
	}

	if err == nil && ingestion.Error != nil {
		return fmt.Errorf("the ingestion failed: %s", ingestion.Error.Message)
	}

	return err
}

// awaitValues waits until the value indexes of the sample are complete, but at most 20 seconds: most questions need no
// value index.
func (f *Folder) awaitValues(ctx context.Context, to *api.Client) error {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		found, err := api.Read[api.LinkResult](to.LinkQuestion(ctx, api.LinkRequest{Username: "self", Namespace: Namespace, Question: Questions()[0]}))
		if err != nil || len(found.Incomplete) == 0 {
			return err
		}

		if err := pause(ctx); err != nil {
			return err
		}
	}

	return nil
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}
