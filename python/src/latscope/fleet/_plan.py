"""Parts of Spark's plans that a query of a user may have: all that is not listed is refused."""

from collections.abc import Iterator
from typing import Any

_NODES = """
    Aggregate CTERelationDef CTERelationRef Distinct Except Expand Filter Generate GlobalLimit
    Intersect Join LocalLimit LocalRelation Offset OneRowRelation Project Sort SubqueryAlias Union
    UnresolvedHaving UnresolvedInlineTable UnresolvedRelation UnresolvedSubqueryColumnAliases
    UnresolvedWith Window WithCTE
"""

_FUNCTIONS = """
    abs:Abs any_value:AnyValue approx_count_distinct:HyperLogLogPlusPlus
    array_contains:ArrayContains avg:Average between:Between cardinality:Size ceil:Ceil ceiling:Ceil
    char_length:Length coalesce:Coalesce concat:Concat count:Count count_if:CountIf
    cume_dist:CumeDist date:Cast date_add:DateAdd date_diff:DateDiff date_sub:DateSub
    date_trunc:TruncTimestamp datediff:DateDiff dense_rank:DenseRank element_at:ElementAt exp:Exp
    explode:Explode first:First first_value:First floor:Floor greatest:Greatest if:If ifnull:Nvl
    isnan:IsNaN isnotnull:IsNotNull isnull:IsNull lag:Lag last:Last last_value:Last lead:Lead
    least:Least length:Length like:Like ln:Log log10:Log10 log2:Log2 log:Logarithm lower:Lower
    map_contains_key:MapContainsKey map_keys:MapKeys map_values:MapValues max:Max max_by:MaxBy
    mean:Average median:Median min:Min min_by:MinBy mod:Remainder month:Month nth_value:NthValue
    ntile:NTile nullif:NullIf nvl:Nvl percent_rank:PercentRank percentile:Percentile
    percentile_approx:ApproximatePercentile percentile_cont:PercentileCont
    percentile_disc:PercentileDisc pow:Pow power:Pow rank:Rank replace:StringReplace round:Round
    row_number:RowNumber sign:Signum size:Size split_part:SplitPart sqrt:Sqrt stddev:StddevSamp
    stddev_pop:StddevPop stddev_samp:StddevSamp substr:Substring substring:Substring sum:Sum
    to_date:ParseToDate trim:StringTrim upper:Upper var_pop:VariancePop var_samp:VarianceSamp
    variance:VarianceSamp year:Year
"""

_EXPRESSIONS = """
    Add AggregateExpression Alias And AttributeReference Between CaseWhen Cast CommonExpressionDef
    CommonExpressionRef CurrentRow$ Divide
    EqualNullSafe EqualTo Exists GetArrayItem GetMapValue GetStructField GreaterThan
    GreaterThanOrEqual If In InSubquery IntegralDivide LessThan LessThanOrEqual LikeAll LikeAny
    ListQuery Literal MultiAlias Multiply NamedExpression Not NullIfResult Or OuterReference Remainder
    ResolvedStar ScalarSubquery SortOrder SpecifiedWindowFrame Subtract UnaryMinus UnaryPositive
    UnboundedFollowing$ UnboundedPreceding$ UnresolvedAlias UnresolvedAttribute
    UnresolvedExtractValue UnresolvedFunction UnresolvedGenerator UnresolvedOrdinal UnresolvedStar
    UnspecifiedFrame$ WindowExpression WindowSpecDefinition With
"""

#: Nodes that only read, as Spark's parser and its analysis name them.
NODES = frozenset(_NODES.split())

#: Functions that a query may call, with the class that Spark's analysis makes of each.
FUNCTIONS = dict(pair.split(":") for pair in _FUNCTIONS.split())

#: Expressions: also operators, literals, columns and what the analysis adds to them.
EXPRESSIONS = frozenset(FUNCTIONS.values()) | frozenset(_EXPRESSIONS.split())


def refused(plan: Any) -> Iterator[str]:
    """Yields the parts of a plan of Spark, with its subqueries and common tables, that are not allowed. Views
    of the session are: no query of a user makes one."""
    todo = [plan]
    while todo:
        node = todo.pop()
        name = _class(node)
        if name == "View" and node.isTempView():
            continue
        if name not in NODES:
            yield name
        todo += [*_each(node.children()), *_each(node.innerChildren())]
        expressions = _each(node.expressions())
        while expressions:
            one = expressions.pop()
            name = _class(one)
            if name not in EXPRESSIONS:
                yield name
            elif (called := _called(name, one)) and called not in FUNCTIONS:
                yield f"{called}()"
            elif name in ("Exists", "ListQuery", "ScalarSubquery"):
                todo.append(one.plan())
            expressions += _each(one.children())


def _called(name: str, expression: Any) -> str | None:
    """Returns the name of the function that an expression of this class calls by name."""
    if name == "UnresolvedFunction":
        return str(expression.nameParts().mkString(".").lower())
    if name == "UnresolvedGenerator":
        return str(expression.name().unquotedString().lower())
    return None


def _class(node: Any) -> str:
    name: str = node.getClass().getName()
    package, _, own = name.rpartition(".")
    return own if package.startswith("org.apache.spark.sql.catalyst.") else name


def _each(found: Any) -> list[Any]:
    return [found.apply(place) for place in range(found.size())]
