// Validates an OLM bundle with the library of the Operator Framework, as `operator-sdk bundle
// validate` does: the default validators, and those of OperatorHub and of good practices.
//
// Prints every finding; exits with 1 if one of them is an error.
package main

import (
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: bundle FOLDER")
		os.Exit(2)
	}
	bundle, err := manifests.GetBundleFromDir(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "could not read the bundle:", err)
		os.Exit(1)
	}
	validators := validation.DefaultBundleValidators.WithValidators(
		validation.OperatorHubV2Validator,
		validation.StandardCapabilitiesValidator,
		validation.StandardCategoriesValidator,
		validation.GoodPracticesValidator,
		validation.AlphaDeprecatedAPIsValidator,
	)
	failed := false
	for _, result := range validators.Validate(bundle.ObjectsToValidate()...) {
		for _, warning := range result.Warnings {
			fmt.Println("warning:", warning.Error())
		}
		for _, problem := range result.Errors {
			fmt.Println("error:", problem.Error())
		}
		failed = failed || result.HasError()
	}
	if failed {
		os.Exit(1)
	}
	fmt.Println("the bundle is valid:", bundle.CSV.GetName())
}
