import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

/**
 * Runs the statements of deploy/flink/tables.sql and prints each table as it is at the end of its topic, as a line of JSON: its name, the count of its
 * rows by an aggregate, and its rows, with numbers, times and dates as texts.
 * Arguments: the file with the statements.
 */
public class TablesQuery {
  public static void main(String[] args) throws Exception {
    TableEnvironment environment = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
    ObjectMapper json = new ObjectMapper();
    String statements = Files.readString(Path.of(args[0])).replaceAll("(?m)^\\s*--.*$", "");
    for (String statement : statements.split(";")) {
      String sql = statement.strip();
      Matcher created = Pattern.compile("CREATE TABLE (\\w+)").matcher(sql);
      if (sql.startsWith("SET")) {
        String[] parts = sql.split("'");
        environment.getConfig().set(parts[1], parts[3]);
      } else if (created.find()) {
        environment.executeSql(sql);
        String name = created.group(1);
        String from = " FROM " + name + " /*+ OPTIONS('scan.bounded.mode'='latest-offset') */";
        Map<String, Object> table = new LinkedHashMap<>();
        table.put("name", name);
        table.put("count", count(environment.executeSql("SELECT COUNT(*)" + from)));
        table.put("rows", rows(environment.executeSql("SELECT *" + from)));
        System.out.println(json.writeValueAsString(table));
      }
    }
  }

  static Object count(TableResult result) throws Exception {
    Object count = 0;
    try (var found = result.collect()) {
      while (found.hasNext()) {
        Row row = found.next();
        if (row.getKind() == RowKind.INSERT || row.getKind() == RowKind.UPDATE_AFTER) count = row.getField(0);
      }
    }
    return count;
  }

  static Iterable<?> rows(TableResult result) throws Exception {
    List<String> columns = result.getResolvedSchema().getColumnNames();
    Map<String, Object> rows = new TreeMap<>();
    try (var found = result.collect()) {
      while (found.hasNext()) {
        Row row = found.next();
        String key = Objects.toString(row.getField(0));
        if (row.getKind() == RowKind.DELETE) rows.remove(key);
        else if (row.getKind() != RowKind.UPDATE_BEFORE) {
          Map<String, Object> values = new LinkedHashMap<>();
          for (int nth = 0; nth < columns.size(); nth++) {
            Object value = row.getField(nth);
            boolean isPlain = value == null || value instanceof Boolean || value instanceof Object[];
            values.put(columns.get(nth), isPlain ? value : value.toString());
          }
          rows.put(key, values);
        }
      }
    }
    return rows.values();
  }
}
