// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package belay_test

import (
	"errors"
	"fmt"

	"github.com/belayproject/belay"
	"github.com/belayproject/belay/drain"
)

// A program asks which options are missing.
func ExampleOptionError() {
	_, err := drain.New(drain.Options{})
	var wrong *belay.OptionError
	if errors.As(err, &wrong) {
		fmt.Println(wrong.Call, wrong.Missing)
	}
	// Output:
	// drain.New [Options.Cache Options.Client]
}
