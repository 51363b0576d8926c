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
	originsMaxAge    = 3600 // how long a browser may cache the permission, in seconds
	originsRuleIDFor = "quern:"
)

// Deployment returns the id of the deployment that the location belongs to. NotFound if it belongs to none yet.
func (s *Store) Deployment(ctx context.Context) (string, error) {
	object, err := s.Read(ctx, deploymentKey, 0, maxDeploymentID)
	if err != nil {
		return "", err
	}
	defer func() { _ = object.Close() }()

	id, err := io.ReadAll(object)

	return string(id), err
}

// ClaimDeployment binds the location to a deployment. It can be repeated. Conflict if the location belongs to another
// deployment, whose files this one would delete as orphans.
func (s *Store) ClaimDeployment(ctx context.Context, id string) error {
	holder, err := s.Deployment(ctx)
	if fault.Is(err, fault.NotFound) {
		// Of two concurrent claims the store rejects one, which then reads the id of the other.
		_, err = s.calls.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &s.bucket, Key: s.full(deploymentKey), Body: strings.NewReader(id), IfNoneMatch: new("*"),
		})
		if err != nil && !hasStatus(err, http.StatusPreconditionFailed) && !hasStatus(err, http.StatusConflict) {
			return translate(err)
		}

		holder, err = s.Deployment(ctx)
		if fault.Is(err, fault.NotFound) {
			return unavailable(err) // rejected because of a concurrent claim that is not visible yet
		}
	}

	if err != nil {
		return err
	}

	if holder != id {
		return fault.New(fault.Conflict, fmt.Sprintf(
			"The bucket and prefix belong to the deployment %q, not to %q. Use another prefix, or the database of that deployment.", holder, id))
	}

	return nil
}

// AllowOrigins allows pages of exactly these origins to use presigned addresses. It replaces the origins that were
// allowed for this location before and keeps the rules that others made for the bucket.
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
