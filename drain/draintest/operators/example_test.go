// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/belayproject/belay/drain/draintest/operators"
)

// A table has one line for each operator that was run.
func ExampleWriteTable() {
	rows := []operators.Row{
		{Operator: "kubevirt-live-migration", Drained: true, Sent: 1, Refused: 1, Took: 7300 * time.Millisecond},
		{Operator: "webhook-500", Sent: 2, Refused: 1, Err: errors.New("failed calling webhook")},
	}
	if err := operators.WriteTable(os.Stdout, rows); err != nil {
		fmt.Println(err)
	}
	// Output:
	// OPERATOR                 DRAINED  SENT  REFUSED  DELETED  SECONDS  WRONG
	// kubevirt-live-migration  yes      1     1        0        7.3      -
	// webhook-500              no       2     1        0        0.0      failed calling webhook
}
