"""A PySpark job: learn how alike household members are, calibrate, and release one mean.

    pip install "pdp-calibrate[spark]"
    spark-submit examples/spark_job.py people.parquet    # columns household, income
    python examples/spark_job.py                         # invented people, on this machine

Spark computes group sizes, sums and sums of squares; nothing else leaves it. Which noise is needed,
and the noise itself, is a matter of the driver. Workers must run the same version of Python as the
driver: PYSPARK_PYTHON says which, and is set below where nobody has.
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import DataFrame, SparkSession, functions as f

import pdp_calibrate as pdp

BOUNDS = (0.0, 100.0)  # public: incomes in thousands, cut off above


def invented(spark: SparkSession, households: int) -> DataFrame:
    """Make households of one to four people whose incomes are correlated."""
    homes = spark.range(households).withColumn("common", f.randn(1))
    people = homes.select("id", "common", f.expr("explode(sequence(0, cast(id % 4 as int)))"))
    own = f.sqrt(f.lit(0.3)) * f.col("common") + f.sqrt(f.lit(0.7)) * f.randn(2)
    return people.select(f.col("id").alias("household"), (50 + 10 * own).alias("income"))


def main() -> None:
    """Fit, calibrate, release."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need this very version
    spark = (
        SparkSession.builder.appName("pdp_calibrate")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    people = spark.read.parquet(sys.argv[1]) if len(sys.argv) > 1 else invented(spark, 4_000)

    # Earlier, public people would be better: a model learned from the secret rows makes calibrate
    # warn. Here the invented ones are called public.
    estimator = pdp.GroupEstimator(
        groups="household", value="income", bounds=BOUNDS, confidence=0.95, source="public"
    ).fit(people)
    print(f"correlation inside households: {estimator.intraclass_.correlation:.3f}")

    calibration = pdp.calibrate(estimator.model_, pdp.Mean(clamp=True), epsilon=1.0)
    print(pdp.explain(calibration))

    release = calibration.release(people, value="income", groups="household")
    low, high = release.interval(alpha=0.05)
    print(f"mean income: {release.value:.3f}, between {low:.3f} and {high:.3f} with 95 %")
    spark.stop()


if __name__ == "__main__":
    main()
