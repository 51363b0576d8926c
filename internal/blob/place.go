package blob

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"quern.dev/quern/internal/fault"
)

const (
	deploymentKey    = "deployment"
	maxDeploymentID  = 1 << 10
	originsMaxAge    = 3600 // seconds that a browser may remember what is allowed
	originsRuleIDFor = "quern:"
)

// Deployment returns the id of the deployment that this place belongs to; NotFound if to none yet.
func (s *Store) Deployment(ctx context.Context) (string, error) {
	object, err := s.Read(ctx, deploymentKey, 0, maxDeploymentID)
	if err != nil {
		return "", err
	}
	defer func() { _ = object.Close() }()

	id, err := io.ReadAll(object)

	return string(id), err
}

// ClaimDeployment takes the place for a deployment, which may be done again. Conflict: it belongs to
// another one, whose files ours would delete as orphans.
func (s *Store) ClaimDeployment(ctx context.Context, id string) error {
	holder, err := s.Deployment(ctx)
	if fault.Is(err, fault.NotFound) {
		// Of two who come at once the store refuses one, who then finds the other's id.
		_, err = s.calls.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &s.bucket, Key: s.full(deploymentKey), Body: strings.NewReader(id), IfNoneMatch: new("*"),
		})
		if err != nil && !hasStatus(err, http.StatusPreconditionFailed) && !hasStatus(err, http.StatusConflict) {
			return translate(err)
		}

		holder, err = s.Deployment(ctx)
		if fault.Is(err, fault.NotFound) {
			return unavailable(err) // refused for the sake of another one that is not there yet
		}
	}

	if err != nil {
		return err
	}

	if holder != id {
		return fault.New(fault.Conflict, fmt.Sprintf(
			"The bucket and prefix belong to the deployment %q and not to %q. Use another prefix, or the database that belongs to it.", holder, id))
	}

	return nil
}

// AllowOrigins lets pages of these origins, and of no others that were allowed here before, use
// presigned addresses. The rules that others made for the bucket stay.
func (s *Store) AllowOrigins(ctx context.Context, origins []string) error {
	var rules []types.CORSRule

	current, err := s.calls.GetBucketCors(ctx, &s3.GetBucketCorsInput{Bucket: &s.bucket})
	if err == nil {
		rules = current.CORSRules
	} else if !hasCode(err, "NoSuchCORSConfiguration") {
		return translate(err)
	}

	id := originsRuleIDFor + s.prefix
	rules = slices.DeleteFunc(rules, func(rule types.CORSRule) bool { return aws.ToString(rule.ID) == id })

	if len(origins) > 0 {
		rules = append(rules, types.CORSRule{
			ID:             &id,
			AllowedOrigins: origins,
			AllowedMethods: []string{http.MethodPut, http.MethodGet, http.MethodHead},
			AllowedHeaders: []string{"*"},
			ExposeHeaders:  []string{"ETag"},
			MaxAgeSeconds:  new(int32(originsMaxAge)),
		})
	}

	if len(rules) == 0 {
		_, err = s.calls.DeleteBucketCors(ctx, &s3.DeleteBucketCorsInput{Bucket: &s.bucket})
	} else {
		_, err = s.calls.PutBucketCors(ctx, &s3.PutBucketCorsInput{
			Bucket: &s.bucket, CORSConfiguration: &types.CORSConfiguration{CORSRules: rules},
		})
	}

	return translate(err)
}
